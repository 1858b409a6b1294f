import { expect, test } from "vitest";
import { type Decision, type RequestKind, requestVerdictSchema, verdictsOf } from "../../src/state/index.ts";
import type { Stores } from "../../src/stores/index.ts";
import { note } from "./entry-fixtures.ts";
import { NOW, ROOT } from "./names.ts";
import { approved, opening, rejected, requestOf } from "./request-fixtures.ts";
import { keyOf, openAgent } from "./stores-fixtures.ts";

export function decideContract(subject: () => Stores): void {
  /** Decides the request of the first call, as seen in the store afterwards. */
  const stored = async (requestId: string) => subject().request(keyOf(), requestId);

  test("a decision is posted to the agent, owner or not, moves no seq and takes the alarm away", async () => {
    const owner = await openAgent(subject());
    const request = requestOf(owner, 0, { expiresAt: NOW + 500 });
    const { requestId, turnId, callId } = request;
    await owner.commit(opening(request));
    await subject().release(keyOf(), owner.epoch);
    const decision: Decision = { verdict: "edited", by: "ann", reason: "less", arguments: { amount: 3 } };
    expect(await subject().decide(keyOf(), requestId, decision, NOW + 7)).toEqual({
      type: "decided",
      request: { ...request, status: "decided", decision, decidedAt: NOW + 7 },
      posted: [ROOT],
    });
    expect(await subject().inbox(keyOf())).toEqual([
      { kind: "decision", key: `decision:${requestId}`, at: NOW + 7, requestId, turnId, callId, decision },
    ]);
    expect(await subject().nextTimerAt()).toBeUndefined();
    const { seq } = owner;
    expect(await owner.acquire()).toMatchObject({ seq });
    await owner.commit({ entries: [note("next")] });
  });

  test("only the first decision counts; all others are told who won, also who sends the same again", async () => {
    const owner = await openAgent(subject());
    const { requestId } = requestOf(owner, 0);
    await owner.commit(opening(requestOf(owner, 0)));
    await subject().decide(keyOf(), requestId, approved, NOW);
    const winner = await stored(requestId);
    for (const later of [rejected, approved]) {
      expect(await subject().decide(keyOf(), requestId, later, NOW + 1)).toEqual({
        type: "conflict",
        request: winner,
        posted: [],
      });
    }
    expect(winner).toMatchObject({ status: "decided", decision: approved, decidedAt: NOW });
    expect(await subject().inbox(keyOf())).toHaveLength(1);
  });

  test("what is closed is decided no more", async () => {
    const owner = await openAgent(subject());
    const { requestId } = requestOf(owner, 0);
    await owner.commit(opening(requestOf(owner, 0)));
    await owner.commit({ entries: [note("goes on")], closedRequests: [requestId] });
    const outcome = await subject().decide(keyOf(), requestId, approved, NOW);
    expect(outcome).toMatchObject({ type: "conflict", request: { status: "closed", decision: null } });
    expect(await subject().inbox(keyOf())).toEqual([]);
  });

  test("nobody approves after the expiry: the decision makes it expired, and who came late is told", async () => {
    const owner = await openAgent(subject());
    const requests = [0, 1].map((index) => requestOf(owner, index, { expiresAt: NOW + 500 }));
    const [inTime, late] = requests.map((request) => request.requestId);
    if (inTime === undefined || late === undefined) throw new Error("two requests were made");
    await owner.commit(opening(...requests));
    expect(await subject().decide(keyOf(), inTime, approved, NOW + 499)).toMatchObject({ type: "decided" });
    expect(await subject().decide(keyOf(), late, approved, NOW + 500)).toEqual({
      type: "conflict",
      request: {
        ...requests[1],
        status: "decided",
        decision: { verdict: "expired", by: null, reason: null },
        decidedAt: NOW + 500,
      },
      posted: [ROOT],
    });
    expect(await subject().inbox(keyOf())).toMatchObject([
      { requestId: inTime, decision: approved },
      { requestId: late, decision: { verdict: "expired", by: null } },
    ]);
    expect(await subject().nextTimerAt()).toBeUndefined();
    expect(await subject().decide(keyOf(), late, approved, NOW)).toMatchObject({ type: "conflict", posted: [] });
  });

  test("the alarm's own decision expires it, with its words", async () => {
    const owner = await openAgent(subject());
    const { requestId } = requestOf(owner, 0);
    await owner.commit(opening(requestOf(owner, 0, { expiresAt: NOW + 500 })));
    const decision: Decision = { verdict: "expired", by: null, reason: "nobody answered" };
    const outcome = await subject().decide(keyOf(), requestId, decision, NOW + 500);
    expect(outcome).toMatchObject({ type: "decided", request: { decision } });
  });

  test("an approval of other arguments than those that are asked about changes nothing (row S15)", async () => {
    const owner = await openAgent(subject());
    const request = requestOf(owner, 0);
    const { requestId } = request;
    await owner.commit(opening(request));
    const decide = async (argumentsHash: string) =>
      subject().decide(keyOf(), requestId, approved, NOW, { argumentsHash });
    expect(await decide("h6")).toEqual({ type: "changed", request });
    expect(await stored(requestId)).toEqual(request);
    expect(await subject().inbox(keyOf())).toEqual([]);
    expect(await decide("h5")).toMatchObject({ type: "decided" });
    expect(await decide("h6")).toMatchObject({ type: "conflict" });
  });

  test.each(Object.keys(verdictsOf) as RequestKind[])(
    "a request of kind %s takes its own verdicts and no others",
    async (kind) => {
      const owner = await openAgent(subject());
      for (const [index, verdict] of requestVerdictSchema.options.entries()) {
        const request = requestOf(owner, index, { kind });
        await owner.commit(opening(request));
        const outcome = await subject().decide(keyOf(), request.requestId, { ...approved, verdict }, NOW);
        const isFit = verdictsOf[kind].includes(verdict);
        expect([verdict, outcome.type]).toEqual([verdict, isFit ? "decided" : "unfit"]);
        expect(await stored(request.requestId)).toMatchObject({ status: isFit ? "decided" : "open" });
      }
      expect(await subject().inbox(keyOf())).toHaveLength(verdictsOf[kind].length);
    },
  );

  test("an unknown request is not found", async () => {
    await openAgent(subject());
    for (const [key, requestId] of [
      [keyOf(), "unknown"],
      [keyOf("nobody"), "unknown"],
    ] as const) {
      expect(await subject().decide(key, requestId, approved, NOW)).toEqual({ type: "notFound" });
    }
  });

  test("many decide at once, and one wins (F20)", async () => {
    const owner = await openAgent(subject());
    for (let index = 0; index < 20; index += 1) {
      const request = requestOf(owner, index);
      await owner.commit(opening(request));
      const people = Array.from({ length: 2 + (index % 7) }, (_, person) => `person ${person}`);
      const outcomes = await Promise.all(
        people.map((by) => subject().decide(keyOf(), request.requestId, { ...approved, by }, NOW)),
      );
      const winner = await stored(request.requestId);
      expect(outcomes.filter((outcome) => outcome.type === "decided")).toHaveLength(1);
      for (const outcome of outcomes) expect(outcome).toMatchObject({ request: winner });
    }
    expect(await subject().inbox(keyOf())).toHaveLength(20);
  });
}
