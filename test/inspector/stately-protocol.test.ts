import { createBrowserReceiver, type StatelyInspectionEvent } from "@statelyai/inspect";
import { expect, it } from "vitest";
import { type AnyStateMachine, createMachine } from "xstate";
import { createInspector, type InspectionFrame } from "../../src/inspector/index.ts";
import { watched } from "./team.ts";

/** The frames of a turn with a tool and a subagent, as sent over a socket. */
async function framesOfTurn(): Promise<readonly InspectionFrame[]> {
  const inspector = createInspector();
  const frames: InspectionFrame[] = [];
  inspector.subscribe((frame) => frames.push(JSON.parse(JSON.stringify(frame)) as InspectionFrame));
  const { runtime, ask } = await watched({ watch: (one) => one.inspect(inspector.onInspect) });
  expect(await ask()).toBe("done");
  await runtime.shutdown();
  return frames;
}

it("the receiver of @statelyai/inspect accepts every frame", async () => {
  const frames = await framesOfTurn();
  const listeners: ((message: { readonly data: unknown }) => void)[] = [];
  const page = {
    addEventListener: (_type: string, listener: (typeof listeners)[number]) => listeners.push(listener),
    opener: null,
  };
  const received: StatelyInspectionEvent[] = [];
  const options = { window: { ...page, self: page, top: page } } as unknown as Parameters<
    typeof createBrowserReceiver
  >[0];
  createBrowserReceiver(options).subscribe((event) => received.push(event));
  for (const data of frames) for (const listener of listeners) listener({ data });
  expect(received).toEqual(frames);
});

it("every actor is sent before its events, with a chart that contains its states", async () => {
  // The type check covers missing fields of the protocol.
  const frames: readonly StatelyInspectionEvent[] = (await framesOfTurn()) as readonly (InspectionFrame &
    StatelyInspectionEvent)[];
  const charts = new Map<string, AnyStateMachine>();
  const faults: string[] = [];
  for (const frame of frames) {
    const { sessionId } = frame;
    if (frame.type === "@xstate.actor") {
      if (frame.parentId !== undefined && !charts.has(frame.parentId)) faults.push(`${sessionId} is before its parent`);
      charts.set(sessionId, createMachine(JSON.parse(frame.definition ?? "") as Parameters<typeof createMachine>[0]));
    } else if (!charts.has(sessionId)) faults.push(`${frame.type} of ${sessionId} is before its actor`);
    else if (frame.type === "@xstate.snapshot") {
      const { value } = frame.snapshot as unknown as { readonly value: string };
      try {
        charts.get(sessionId)?.resolveState({ value, context: {} });
      } catch (error) {
        faults.push(`${sessionId} cannot be ${JSON.stringify(value)}: ${String(error)}`);
      }
    }
  }
  expect(faults).toEqual([]);
  expect(charts.size).toBeGreaterThanOrEqual(5);
});

it("an event names the actor whose effect wrote it, and none if it comes from outside", async () => {
  const frames = await framesOfTurn();
  const sources = new Map<string, Set<string | undefined>>();
  for (const frame of frames) {
    if (frame.type !== "@xstate.event" || frame.rootId !== "desk" || frame.sessionId.includes("~")) continue;
    const about = `${frame.event.type} to ${frame.sessionId}`;
    sources.set(about, (sources.get(about) ?? new Set()).add(frame.sourceId));
  }
  const of = (about: string): readonly (string | undefined)[] => [...(sources.get(about) ?? [])];
  expect(of("turn.started to desk")).toEqual([undefined]);
  expect(of("model.responded to desk#1")).toEqual(["desk#1"]);
  expect(of("tool.settled to desk#1")).toEqual(["desk#1:1:0", "desk#1:1:1"]);
  expect(of("child.ended to desk")).toEqual([expect.stringMatching(/^desk~/)]);
  const actors = new Set(frames.map(({ sessionId }) => sessionId));
  const named = [...sources.values()].flatMap((all) => [...all].filter((source) => source !== undefined));
  expect(named.filter((source) => !actors.has(source))).toEqual([]);
});
