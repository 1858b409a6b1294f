import { expect, it, vi } from "vitest";
import { memoryStores, type TroupeEvent } from "../../src/index.ts";
import { TreeFeed } from "../../src/telemetry/listen.ts";
import { end, start, teller } from "./hand-made.ts";

/** A feed with events from the test; its deliveries are recorded as texts. */
function handFed(onEvent: (event: TroupeEvent, feed: TreeFeed) => Promise<void> | undefined) {
  const heard: string[] = [];
  let publish: ((event: TroupeEvent) => void) | undefined;
  const subscribe = (observer: unknown) => {
    publish = observer as (event: TroupeEvent) => void;
    return { unsubscribe: () => undefined };
  };
  const feed: TreeFeed = new TreeFeed(
    { stores: memoryStores(), tenant: "default", subscribe },
    {
      what: "the test",
      isConcerned: ({ type }) => type !== "warning",
      needsPast: ({ type }) => type !== "turn.started",
      onPast: (_, events) => void heard.push(`past of ${events.length}`),
      onEvent: (event) => {
        heard.push(event.type);
        return onEvent(event, feed);
      },
    },
  );
  return { feed, heard, publish: (event: TroupeEvent) => publish?.(event) };
}

const desk = teller({ at: start, row: 0 }, { agentId: "desk" });
const started = desk.tell({ type: "turn.started", number: 1, prompt: "" });
const step = desk.tell({ type: "step.started", model: "gpt-5" }, 1);
const ended = desk.tell({ type: "turn.completed", ...end });

it("delivers events immediately, and reads the past only of a tree whose start it missed", async () => {
  const early = handFed(() => undefined);
  for (const event of [started, step]) early.publish(event);
  expect(early.heard).toEqual(["turn.started", "step.started"]);

  const late = handFed(() => undefined);
  for (const event of [step, ended]) late.publish(event);
  expect(late.heard).toEqual([]);
  await late.feed.flush();
  expect(late.heard).toEqual(["past of 0", "step.started", "turn.completed"]);
});

it("keeps the order if an event takes time, and leaves out irrelevant events", async () => {
  const slow = Promise.withResolvers<void>();
  const { feed, heard, publish } = handFed((event) => (event === step ? slow.promise : undefined));
  const warning = desk.tell({ type: "warning", code: "x", message: "y" });
  for (const event of [started, step, warning, ended]) publish(event);
  expect(heard).toEqual(["turn.started", "step.started"]);
  slow.resolve();
  await feed.flush();
  expect(heard).toEqual(["turn.started", "step.started", "turn.completed"]);
});

it("drops no tree with pending events: its past would be delivered a second time", async () => {
  const slow = Promise.withResolvers<void>();
  const forgotten: boolean[] = [];
  const { feed, publish, heard } = handFed((event, it) => {
    if (event === ended) forgotten.push(it.forget("desk"));
    return event === step ? slow.promise : undefined;
  });
  for (const event of [started, step, ended, started]) publish(event);
  slow.resolve();
  await feed.flush();
  publish(ended);
  publish(step);
  await feed.flush();
  expect(forgotten).toEqual([false, true]);
  // Only the last event belonged to a tree that had been dropped.
  expect(heard.indexOf("past of 0")).toBe(heard.length - 2);
});

it("continues after an event that failed, and reports it once", async () => {
  const warned = vi.spyOn(process, "emitWarning").mockReturnValue();
  const { feed, heard, publish } = handFed((event) => {
    if (event === step) return Promise.reject(new Error("away"));
    throw new Error("broken");
  });
  for (const event of [started, step, ended]) publish(event);
  await feed.flush();
  expect(heard).toEqual(["turn.started", "step.started", "turn.completed"]);
  expect(warned.mock.calls.map(([message]) => message)).toEqual(["the test could not process an event: broken"]);
  warned.mockRestore();
});
