import { describe, expect, test } from "vitest";
import { callGated, callIdAt, refused, resumed, toolRetrying, toolSettled, toolStarted } from "./bodies.ts";
import { callAfter } from "./call-after.ts";
import { callHookApplied, callReviewed } from "./hook-bodies.ts";
import { requestDecided, requestOpened } from "./request-bodies.ts";

const callId = callIdAt(0);
const gated = callGated(0, 1, { needsApproval: true });
const opened = requestOpened();
const asked = [gated, opened];
const performing = { performing: "gated" };

describe("a call that waits for a decision", () => {
  test("runs no effect", () => {
    const snapshot = callAfter(...asked);
    expect(snapshot.value).toBe("awaitingDecision");
    expect(snapshot.running).toBeUndefined();
    expect(snapshot.context).toMatchObject({ requests: 1, openRequest: { requestId: `${callId}:1` }, decision: null });
  });

  test.each(["approved", "edited", "rejected", "expired"] as const)("continues after the verdict: %s", (verdict) => {
    const snapshot = callAfter(...asked, requestDecided(verdict));
    expect(snapshot.value).toEqual(performing);
    expect(snapshot).toMatchObject({ effects: ["performCall", "performCall"], running: "performCall" });
    expect(snapshot.context).toMatchObject({ openRequest: null, decision: { verdict } });
  });

  test("approves only the arguments of the request (S15)", () => {
    expect(callAfter(...asked, requestDecided("approved")).context.approvedHash).toBe("a");
    for (const verdict of ["edited", "rejected", "expired"] as const) {
      expect(callAfter(...asked, requestDecided(verdict)).context.approvedHash).toBeNull();
    }
  });

  test("edited arguments are gated again, and are then the approved ones", () => {
    const again = callGated(0, 1, { needsApproval: true, arguments: { q: 2 }, argumentsHash: "b" });
    const { value, context } = callAfter(...asked, requestDecided("edited"), again);
    expect(value).toEqual(performing);
    expect(context).toMatchObject({ approvedHash: "b", decision: null, gate: { arguments: { q: 2 } } });
    expect(callAfter(...asked, requestDecided("edited"), again, toolStarted()).value).toEqual({
      performing: "running",
    });
  });

  test("a call gated for the first time has no approved arguments", () => {
    expect(callAfter(gated).context.approvedHash).toBeNull();
    expect(callAfter(gated, callGated(0, 1, { argumentsHash: "b" })).context.approvedHash).toBeNull();
  });

  test("a decision on another request changes nothing", () => {
    const other = requestDecided("approved", "approval", 0, 2);
    expect(callAfter(...asked, other).context).toMatchObject({ decision: null, approvedHash: null });
  });

  test("is settled according to the decision", () => {
    expect(callAfter(...asked, requestDecided("rejected"), toolSettled(0, 1, "denied")).value).toBe("settled");
    const client = [callGated(0, 1, { kind: "client" }), requestOpened("client"), requestDecided("answered", "client")];
    expect(callAfter(...client).context.decision?.result).toEqual({ text: "blue", isError: false });
    expect(callAfter(...client, toolSettled()).value).toBe("settled");
  });

  test("can open another request: credentials after the approval, which is kept", () => {
    const both = [...asked, requestDecided("approved"), requestOpened("auth", 0, 2)];
    expect(callAfter(...both).value).toBe("awaitingDecision");
    expect(callAfter(...both).context).toMatchObject({ requests: 2, decision: null, approvedHash: "a" });
    const provided = [...both, requestDecided("provided", "auth", 0, 2)];
    expect(callAfter(...provided).value).toEqual(performing);
    expect(callAfter(...provided, toolStarted()).value).toEqual({ performing: "running" });
  });

  test("can request credentials between attempts", () => {
    const retries = [callGated(), toolStarted(), toolRetrying(), requestOpened("auth")];
    expect(callAfter(...retries).value).toBe("awaitingDecision");
    expect(callAfter(...retries).context).toMatchObject({ attempt: 1, startedEpoch: null });
  });

  test("a resume does not wake it, and a pause after the decision holds it", () => {
    expect(callAfter(...asked, resumed).value).toBe("awaitingDecision");
    const held = [...asked, requestDecided("approved"), refused("paused", "tool.started", { callId })];
    expect(callAfter(...held).value).toBe("held");
    expect(callAfter(...held, resumed).value).toEqual(performing);
    expect(callAfter(...held, resumed).context).toMatchObject({ approvedHash: "a", decision: { verdict: "approved" } });
  });

  test("can be settled from outside, which removes its request", () => {
    const { value, context } = callAfter(...asked, toolSettled(0, 1, "interrupted"));
    expect(value).toBe("settled");
    expect(context).toMatchObject({ openRequest: null, outcome: "interrupted" });
  });
});

describe("a result that hooks review", () => {
  const ran = [callGated(), toolStarted()];
  const reviewDue = { reviewDue: true } as const;
  const success = { ...toolSettled(), ...reviewDue };
  const unknown = { ...toolSettled(0, 1, "outcome_unknown"), ...reviewDue };

  test("is reviewed before the call is settled", () => {
    expect(callAfter(...ran, success).value).toBe("reviewing");
    expect(callAfter(...ran, success, callReviewed()).value).toBe("settled");
    expect(callAfter(...ran, unknown, callReviewed()).value).toBe("outcomeUnknown");
  });

  test("is settled at once without hooks", () => {
    expect(callAfter(...ran, toolSettled()).value).toBe("settled");
    expect(callAfter(...ran, toolSettled(0, 1, "outcome_unknown")).value).toBe("outcomeUnknown");
  });

  test("records each hook, so that none runs again", () => {
    const reviews = [...ran, unknown, callHookApplied("onError"), callHookApplied("afterEachTool")];
    expect(callAfter(...reviews).value).toBe("reviewing");
    expect(callAfter(...reviews).context).toMatchObject({ reviewDue: true, reviews: ["onError:0", "afterEachTool:0"] });
    expect(callAfter(...reviews, callReviewed()).context.reviewDue).toBe(false);
  });

  test("has its outcome during the review", () => {
    expect(callAfter(...ran, unknown).context).toMatchObject({ outcome: "outcome_unknown", startedEpoch: null });
  });

  test("does not change when a pause ends", () => {
    expect(callAfter(...ran, success, resumed).value).toBe("reviewing");
  });

  test("a result after a decision is reviewed too", () => {
    const denied = { ...toolSettled(0, 1, "denied"), ...reviewDue };
    expect(callAfter(...asked, requestDecided("rejected"), denied).value).toBe("reviewing");
    expect(callAfter(...asked, requestDecided("rejected"), denied, callReviewed()).value).toBe("settled");
  });
});
