import { describe, expect, test } from "vitest";
import {
  type CallState,
  callStateSchema,
  callOfRequest,
  declareCall,
  type EntryBody,
  foldCall,
  requestIdOf,
} from "../../src/state/index.ts";
import {
  at,
  callGated,
  callIdAt,
  childSpawned,
  journalOf,
  refused,
  resumed,
  toolRetrying,
  toolSettled,
  toolStarted,
} from "../machines/bodies.ts";
import { callHookApplied, callReviewed, contextExpanded } from "../machines/hook-bodies.ts";
import { requestDecided, requestOpened } from "../machines/request-bodies.ts";

const callId = callIdAt(0);

/** The fold of the first call of a round, after a JSON round trip. */
function foldOf(...bodies: readonly EntryBody[]): CallState {
  const folded = journalOf(bodies).reduce(foldCall, declareCall(callId, "look"));
  return callStateSchema.parse(JSON.parse(JSON.stringify(folded)));
}

const gated = callGated(0, 1, { needsApproval: true });
const asked = [gated, requestOpened()];

test("a call's id contains its turn, step and index", () => {
  expect(declareCall("desk#1:3:2", "look")).toMatchObject({ turnId: "desk#1", step: 3, index: 2, gate: null });
});

describe("a request", () => {
  test("is numbered within its call, from 1", () => {
    expect(requestIdOf(callId, 2)).toBe(`${callId}:2`);
    expect(callOfRequest(requestIdOf(callId, 12))).toBe(callId);
    expect(foldOf(gated).requests).toBe(0);
    expect(foldOf(...asked, requestDecided(), requestOpened("auth", 0, 2)).requests).toBe(2);
  });

  test("contains the hash of the arguments it shows", () => {
    const openRequest = { requestId: `${callId}:1`, kind: "approval", argumentsHash: "a" };
    expect(foldOf(...asked)).toMatchObject({ openRequest, approvedHash: null });
  });

  test("is removed by its decision, which records author, verdict and reason", () => {
    const { openRequest, decision } = foldOf(...asked, { ...requestDecided("rejected"), reason: "no" });
    expect(openRequest).toBeNull();
    const requestId = requestIdOf(callId, 1);
    expect(decision).toEqual({
      requestId,
      kind: "approval",
      asked: false,
      verdict: "rejected",
      by: "ann",
      reason: "no",
    });
  });

  test("is decided once: decisions on another request, or later ones, are ignored", () => {
    const decided = foldOf(...asked, requestDecided("rejected"));
    expect(foldOf(...asked, requestDecided("rejected"), requestDecided("approved"))).toEqual(decided);
    expect(foldOf(...asked, requestDecided("approved", "approval", 0, 2))).toEqual(foldOf(...asked));
    expect(foldOf(gated, requestDecided())).toEqual(foldOf(gated));
  });

  test("clears an earlier refusal and decision", () => {
    const refusal = refused("paused", "tool.started", { callId });
    expect(foldOf(gated, refusal, requestOpened()).refusal).toBeNull();
    expect(foldOf(...asked, requestDecided(), requestOpened("auth", 0, 2)).decision).toBeNull();
  });
});

describe("a call whose code opens a request", () => {
  const begun = [callGated(0), toolStarted(0)];
  const opened = { ...requestOpened(), asked: true as const, argumentsHash: "other" };

  test("stops running, and gets its last note and the decision when it runs again", () => {
    const noted = { type: "tool.noted", turnId: gated.turnId, step: 1, callId } as const;
    const notes = [
      { ...noted, note: { far: 1 } },
      { ...noted, note: { far: 2 } },
    ];
    expect(foldOf(...begun, ...notes)).toMatchObject({ note: { far: 2 }, startedEpoch: 1 });
    const asking = foldOf(...begun, ...notes, opened);
    expect(asking).toMatchObject({ note: { far: 2 }, startedEpoch: null, openRequest: { asked: true } });
    const decided = foldOf(...begun, ...notes, opened, requestDecided(), toolStarted(0, 1, 2));
    expect(decided).toMatchObject({ attempt: 2, decision: { verdict: "approved", asked: true } });
  });

  test("is not approved by that request's decision", () => {
    expect(foldOf(...begun, opened, requestDecided()).approvedHash).toBeNull();
  });
});

describe("the approved arguments (S15)", () => {
  const again = callGated(0, 1, { needsApproval: true, arguments: { q: 2 }, argumentsHash: "b" });

  test("have the hash of the request, not the hash stored now", () => {
    expect(foldOf(...asked, requestDecided()).approvedHash).toBe("a");
    const changed = foldOf(...asked, again, requestDecided());
    expect(changed).toMatchObject({ approvedHash: "a", gate: { argumentsHash: "b" } });
  });

  test("after an edit are the arguments after their new check", () => {
    const edited = [...asked, requestDecided("edited")];
    expect(foldOf(...edited)).toMatchObject({ approvedHash: null, decision: { arguments: { q: 2 } } });
    expect(foldOf(...edited, again)).toMatchObject({ approvedHash: "b", decision: null, gate: { argumentsHash: "b" } });
  });

  test("after an edit that failed the check have an empty hash", () => {
    const invalid = callGated(0, 1, { verdict: "invalid", argumentsHash: "", message: "q must be a number" });
    expect(foldOf(...asked, requestDecided("edited"), invalid)).toMatchObject({
      gate: { verdict: "invalid", needsApproval: false },
      approvedHash: "",
    });
  });

  test.each(["rejected", "expired"] as const)("are none after the verdict %s", (verdict) => {
    expect(foldOf(...asked, requestDecided(verdict)).approvedHash).toBeNull();
  });

  test("are kept across credentials, attempts and pauses", () => {
    const provided = [requestOpened("auth", 0, 2), requestDecided("provided", "auth", 0, 2)];
    const bodies = [...asked, requestDecided(), ...provided, toolStarted(), toolRetrying(), resumed];
    expect(foldOf(...bodies)).toMatchObject({ approvedHash: "a", attempt: 1, startedEpoch: null });
  });
});

test("an answer is stored with the decision", () => {
  const answered = foldOf(callGated(), requestOpened("question"), requestDecided("answered", "question"));
  expect(answered.decision).toMatchObject({ kind: "question", result: { text: "blue", isError: false } });
});

test("the gate records whether the call needs an approval", () => {
  expect([foldOf(gated).gate?.needsApproval, foldOf(callGated()).gate?.needsApproval]).toEqual([true, false]);
});

describe("a result", () => {
  const due = { ...toolSettled(), reviewDue: true } as const;

  test("closes the request of its call", () => {
    expect(foldOf(...asked, toolSettled(0, 1, "interrupted"))).toMatchObject({
      outcome: "interrupted",
      openRequest: null,
      reviewDue: false,
    });
  });

  test("records its reviews, hook by hook", () => {
    const reviewed = foldOf(
      callGated(),
      toolStarted(),
      due,
      callHookApplied("onError"),
      callHookApplied("afterEachTool"),
    );
    expect(reviewed).toMatchObject({ reviewDue: true, reviews: ["onError:0", "afterEachTool:0"], outcome: "success" });
    expect(foldOf(callGated(), due, callReviewed())).toMatchObject({ reviewDue: false, outcome: "success" });
  });
});

test("an entry that does not concern the call returns the same object", () => {
  const call = foldOf(callGated());
  const others = [contextExpanded(), refused("paused", "generate.requested", { callId })];
  for (const body of others) expect(foldCall(call, at(body, 9)) === call, body.type).toBe(true);
  expect(foldCall(call, at(childSpawned(), 9)) === call).toBe(false);
});
