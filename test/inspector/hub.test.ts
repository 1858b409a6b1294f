import { expect, it } from "vitest";
import {
  createInspector,
  type InspectionFrame,
  type Inspector,
  type StartedInspector,
} from "../../src/inspector/index.ts";
import { createFakeClock } from "../../src/testing/index.ts";
import { watched } from "./team.ts";

/** Watches the machines only, without a server. */
function framed(inspector: Inspector): Pick<StartedInspector, "watch"> {
  return { watch: (runtime) => runtime.inspect(inspector.onInspect) };
}

/** The state of a client that has followed from the start: actors by id, with their states. */
function seenBy(frames: readonly InspectionFrame[]) {
  const actors = new Map<string, { parentId: string | undefined; rootId: string; states: string[] }>();
  for (const frame of frames) {
    if (frame.type === "@xstate.actor") {
      const states = actors.get(frame.sessionId)?.states ?? [];
      actors.set(frame.sessionId, { parentId: frame.parentId, rootId: frame.rootId, states });
    } else if (frame.type === "@xstate.snapshot") {
      actors.get(frame.sessionId)?.states.push(JSON.stringify(frame.snapshot.value ?? frame.snapshot.status));
    }
  }
  return actors;
}

it.each([false, true])(
  "M7: actors have the ids of their agents, turns and calls, restored after every commit: %s",
  async (restored) => {
    const inspector = createInspector();
    const frames: InspectionFrame[] = [];
    inspector.subscribe((frame) => frames.push(frame));
    const { runtime, ask } = await watched(framed(inspector), { restoreAfterCommit: restored });
    expect(await ask()).toBe("done");
    const child = (await runtime.list()).find(({ parentAgentId }) => parentAgentId === "desk")?.agentId ?? "";
    await runtime.shutdown();
    const actors = seenBy(frames);
    expect(actors.get("desk")).toMatchObject({ parentId: undefined, rootId: "desk" });
    expect(actors.get("desk#1")).toMatchObject({ parentId: "desk", rootId: "desk" });
    expect(actors.get("desk#1:1:0")).toMatchObject({ parentId: "desk#1" });
    expect(actors.get(child)).toMatchObject({ parentId: "desk", rootId: "desk" });
    expect(actors.get(`${child}#1`)).toMatchObject({ parentId: child, rootId: "desk" });
    expect(actors.get("desk#1")?.states).toContain('{"thinking":"calling"}');
    expect(actors.get("desk")?.states).toContain('"ready"');
    expect(actors.get("desk#1:1:0")?.states).toContain('"settled"');
    // No id of XState's own counter is left.
    expect([...actors.keys()].filter((id) => /^x:\d+$/.test(id))).toEqual([]);
  },
);

it("frames contain a time, their own id and the version of the protocol", async () => {
  const clock = createFakeClock();
  const inspector = createInspector({ now: () => clock.now() });
  const frames: InspectionFrame[] = [];
  inspector.subscribe((frame) => frames.push(frame));
  const { runtime } = await watched(framed(inspector));
  await runtime.shutdown();
  expect(new Set(frames.map(({ createdAt }) => createdAt))).toEqual(new Set([String(clock.now())]));
  expect(new Set(frames.map(({ id }) => id)).size).toBe(frames.length);
  expect(new Set(frames.map(({ _version }) => _version))).toEqual(new Set(["0.7.0"]));
  const [first] = frames;
  expect(first).toMatchObject({ type: "@xstate.actor", sessionId: "desk", name: "desk" });
  const chart: unknown = JSON.parse(first?.type === "@xstate.actor" ? first.definition : "");
  expect(chart).toMatchObject({ id: "agent", initial: "created", states: { busy: { initial: "working" } } });
  expect(chart).not.toHaveProperty("context");
});

it("a client that connects late receives each existing actor, parents first, in its current state", async () => {
  const inspector = createInspector();
  const { runtime, ask } = await watched(framed(inspector));
  await ask();
  const frames = inspector.frames();
  const ids = frames.map(({ sessionId }) => sessionId);
  expect(new Set(ids).size).toBe(ids.length);
  const children = frames.filter(({ parentId }) => parentId !== undefined);
  expect(children.map(({ sessionId }) => sessionId)).toContain("desk#1");
  const early = children.filter(({ parentId, sessionId }) => ids.indexOf(parentId ?? "") > ids.indexOf(sessionId));
  expect(early).toEqual([]);
  const desk = frames.find(({ sessionId }) => sessionId === "desk");
  expect(desk?.snapshot).toMatchObject({ status: "active", value: "ready", context: { turnCount: 1 } });
  await runtime.shutdown();
  expect(inspector.frames().find(({ sessionId }) => sessionId === "desk")?.snapshot.status).toBe("stopped");
});

it("the memory of ended actors is bounded", async () => {
  const inspector = createInspector({ keptEnded: 3 });
  const { runtime, ask } = await watched(framed(inspector));
  for (let turn = 0; turn < 5; turn += 1) await ask();
  await runtime.shutdown();
  const left = inspector.frames();
  expect(left).toHaveLength(3);
  expect(left.map(({ sessionId }) => sessionId)).toContain("desk");
});
