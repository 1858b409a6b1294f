import { expect, test } from "vitest";
import {
  callGated,
  callIdAt,
  childEnded,
  childSpawned,
  refused,
  resumed,
  toolRetrying,
  toolSettled,
  toolStarted,
} from "./bodies.ts";
import { callAfter } from "./call-after.ts";

const callId = callIdAt(0);

const gated = callGated();
const held = refused("paused", "tool.started", { callId });

test("declared, gated, running, settled", () => {
  expect(callAfter().value).toEqual({ performing: "declared" });
  expect(callAfter(gated).value).toEqual({ performing: "gated" });
  expect(callAfter(gated, toolStarted()).value).toEqual({ performing: "running" });
  expect(callAfter(gated, toolStarted(), toolSettled()).value).toBe("settled");
});

test("if only its schema gates it, the intent to run it includes its gate", () => {
  const begun = callAfter({ ...toolStarted(), arguments: { q: 1 } });
  expect(begun.value).toEqual({ performing: "running" });
  expect(begun.effects).toEqual(["performCall"]);
  expect(begun.context.gate).toMatchObject({
    verdict: "allowed",
    kind: "function",
    effect: "none",
    arguments: { q: 1 },
  });
  const queued = callAfter({ ...toolStarted(), arguments: { q: 1 }, queue: "browser" });
  expect(queued.value).toBe("awaitingQueue");
  expect(queued.context.gate).toEqual(begun.context.gate);
});

test.each(["paused", "budget"] as const)("a refused intent (%s) includes the gate as well", (reason) => {
  const refusal = { ...refused(reason, "tool.started", { callId }), arguments: { q: 1 }, effect: "once" as const };
  expect(callAfter(refusal).value).toEqual(reason === "paused" ? "held" : { performing: "declared" });
  expect(callAfter(refusal).context.gate).toMatchObject({ verdict: "allowed", effect: "once", arguments: { q: 1 } });
  const again = callAfter(refusal, resumed, { ...toolStarted(), arguments: { q: 1 }, effect: "once" });
  expect(again.value).toEqual({ performing: "running" });
});

test("one effect runs from the declaration to the result", () => {
  expect(callAfter()).toMatchObject({ effects: ["performCall"], running: "performCall" });
  const last = callAfter(gated, toolStarted(), toolRetrying(), toolStarted(0, 1, 2));
  expect(last).toMatchObject({ effects: ["performCall"], running: "performCall" });
  expect(callAfter(gated, toolSettled()).running).toBeUndefined();
});

test("a failed attempt queues the next one", () => {
  expect(callAfter(gated, toolStarted(), toolRetrying()).value).toEqual({ performing: "queued" });
  expect(callAfter(gated, toolStarted(), toolRetrying()).context).toMatchObject({ startedEpoch: null, retryAt: 2_000 });
  const again = callAfter(gated, toolStarted(), toolRetrying(), toolStarted(0, 1, 2));
  expect(again.value).toEqual({ performing: "running" });
  expect(again.context).toMatchObject({ attempt: 2, startedAt: 1_002 });
});

test("a call that was not allowed is settled without being started", () => {
  const denied = callGated(0, 1, { verdict: "denied", message: "no" });
  expect(callAfter(denied, toolSettled(0, 1, "denied")).value).toBe("settled");
});

test("an unknown outcome is a state of its own", () => {
  const snapshot = callAfter(gated, toolStarted(), toolSettled(0, 1, "outcome_unknown"));
  expect(snapshot.value).toBe("outcomeUnknown");
  expect(snapshot.context).toMatchObject({ outcome: "outcome_unknown", startedEpoch: null });
});

test("a subagent's call waits for its child, whose end becomes its result", () => {
  expect(callAfter(gated, childSpawned()).value).toBe("awaitingChild");
  const ended = callAfter(gated, childSpawned(), childEnded());
  expect(ended.value).toBe("settlingChild");
  expect(ended.context.childResult).toEqual({ outcome: "completed", stopReason: "completed", text: "read" });
  expect(callAfter(gated, childSpawned(), childEnded(), toolSettled()).value).toBe("settled");
});

test("a child may end before the entry of its spawn", () => {
  expect(callAfter(gated, childEnded()).value).toBe("settlingChild");
});

test("a pause holds the call until the resume, and then the call is gated", () => {
  expect(callAfter(gated, held).value).toBe("held");
  const again = callAfter(gated, held, resumed);
  expect(again.value).toEqual({ performing: "gated" });
  expect(again.context.gate?.verdict).toBe("allowed");
  expect(again.context.refusal).toBeNull();
  expect(callAfter(gated, held, resumed, toolStarted()).value).toEqual({ performing: "running" });
});

test("the effect settles any other refusal; the refusal of a side call is ignored", () => {
  const limited = refused("budget", "tool.started", { callId });
  expect(callAfter(gated, limited).value).toEqual({ performing: "gated" });
  expect(callAfter(gated, limited).context.refusal).toMatchObject({ reason: "budget", limit: "maxTokens" });
  const side = refused("paused", "generate.requested", { callId });
  expect(callAfter(gated, toolStarted(), side).value).toEqual({ performing: "running" });
  expect(callAfter(gated, toolStarted(), side).context.refusal).toBeNull();
});

test("a held call or one that awaits its child can be settled from outside", () => {
  expect(callAfter(gated, held, toolSettled(0, 1, "interrupted")).value).toBe("settled");
  expect(callAfter(gated, childSpawned(), toolSettled(0, 1, "interrupted")).value).toBe("settled");
});
