import { expect, test } from "vitest";
import { type Decision, type RequestKind, requestVerdictSchema, verdictsOf } from "../../src/state/index.ts";
import type { Stores, TurnCommand } from "../../src/stores/index.ts";
import { memoryStores } from "../../src/stores/memory.ts";
import { note } from "./entry-fixtures.ts";
import { NOW, ROOT, TENANT, TURN } from "./names.ts";
import { approved, opening, rejected, requestOf } from "./request-fixtures.ts";
import { here, agentKey, openAgent } from "./stores-fixtures.ts";
import { exported } from "./team-fixtures.ts";
import { openChild } from "./tree-fixtures.ts";

export function decideContract(subject: () => Stores): void {
  /** Decides the request of the first call and returns the outcome and the stored request. */
  const stored = async (requestId: string) => subject().request(agentKey(), requestId);

  test("a decision is posted to the agent, with or without an owner, moves no seq and removes the timer", async () => {
    const owner = await openAgent(subject());
    const request = requestOf(owner, 0, { expiresAt: NOW + 500 });
    const { requestId, turnId, callId } = request;
    await owner.commit(opening(request));
    await subject().release(agentKey(), owner.epoch);
    const decision: Decision = { verdict: "edited", by: "ann", reason: "less", arguments: { amount: 3 } };
    expect(await subject().decide(agentKey(), requestId, decision, NOW + 7)).toEqual({
      type: "decided",
      request: { ...request, status: "decided", decision, decidedAt: NOW + 7 },
      posted: [ROOT],
    });
    expect(await subject().inbox(agentKey())).toEqual([
      { kind: "decision", key: `decision:${requestId}`, at: NOW + 7, requestId, turnId, callId, decision },
    ]);
    expect(await subject().nextTimerAt()).toBeUndefined();
    const { seq } = owner;
    expect(await owner.acquire()).toMatchObject({ seq });
    await owner.commit({ entries: [note("next")] });
  });

  test("only the first decision counts; all later ones receive it, including the same decision repeated", async () => {
    const owner = await openAgent(subject());
    const { requestId } = requestOf(owner, 0);
    await owner.commit(opening(requestOf(owner, 0)));
    await subject().decide(agentKey(), requestId, approved, NOW);
    const winner = await stored(requestId);
    for (const later of [rejected, approved]) {
      expect(await subject().decide(agentKey(), requestId, later, NOW + 1)).toEqual({
        type: "conflict",
        request: winner,
        posted: [],
      });
    }
    expect(winner).toMatchObject({ status: "decided", decision: approved, decidedAt: NOW });
    expect(await subject().inbox(agentKey())).toHaveLength(1);
  });

  test("a closed request cannot be decided", async () => {
    const owner = await openAgent(subject());
    const { requestId } = requestOf(owner, 0);
    await owner.commit(opening(requestOf(owner, 0)));
    await owner.commit({ entries: [note("goes on")], closedRequests: [requestId] });
    const outcome = await subject().decide(agentKey(), requestId, approved, NOW);
    expect(outcome).toMatchObject({ type: "conflict", request: { status: "closed", decision: null } });
    expect(await subject().inbox(agentKey())).toEqual([]);
  });

  test("an approval after the expiry is rejected: the request expires and the late caller receives that outcome", async () => {
    const owner = await openAgent(subject());
    const requests = [0, 1].map((index) => requestOf(owner, index, { expiresAt: NOW + 500 }));
    const [inTime, late] = requests.map((request) => request.requestId);
    if (inTime === undefined || late === undefined) throw new Error("two requests were made");
    await owner.commit(opening(...requests));
    expect(await subject().decide(agentKey(), inTime, approved, NOW + 499)).toMatchObject({ type: "decided" });
    expect(await subject().decide(agentKey(), late, approved, NOW + 500)).toEqual({
      type: "conflict",
      request: {
        ...requests[1],
        status: "decided",
        decision: { verdict: "expired", by: null, reason: null },
        decidedAt: NOW + 500,
      },
      posted: [ROOT],
    });
    expect(await subject().inbox(agentKey())).toMatchObject([
      { requestId: inTime, decision: approved },
      { requestId: late, decision: { verdict: "expired", by: null } },
    ]);
    expect(await subject().nextTimerAt()).toBeUndefined();
    expect(await subject().decide(agentKey(), late, approved, NOW)).toMatchObject({ type: "conflict", posted: [] });
  });

  test("the timer's decision expires the request with its reason", async () => {
    const owner = await openAgent(subject());
    const { requestId } = requestOf(owner, 0);
    await owner.commit(opening(requestOf(owner, 0, { expiresAt: NOW + 500 })));
    const decision: Decision = { verdict: "expired", by: null, reason: "no answer came" };
    const outcome = await subject().decide(agentKey(), requestId, decision, NOW + 500);
    expect(outcome).toMatchObject({ type: "decided", request: { decision } });
  });

  test("an approval of arguments that differ from the requested ones changes nothing (row S15)", async () => {
    const owner = await openAgent(subject());
    const request = requestOf(owner, 0);
    const { requestId } = request;
    await owner.commit(opening(request));
    const decide = async (argumentsHash: string) =>
      subject().decide(agentKey(), requestId, approved, NOW, { argumentsHash });
    expect(await decide("h6")).toEqual({ type: "changed", request });
    expect(await stored(requestId)).toEqual(request);
    expect(await subject().inbox(agentKey())).toEqual([]);
    expect(await decide("h5")).toMatchObject({ type: "decided" });
    expect(await decide("h6")).toMatchObject({ type: "conflict" });
  });

  test.each(Object.keys(verdictsOf) as RequestKind[])(
    "a request of kind %s accepts its own verdicts and no others",
    async (kind) => {
      const owner = await openAgent(subject());
      for (const [index, verdict] of requestVerdictSchema.options.entries()) {
        const asked = kind === "budget" ? { arguments: { accountId: "turn:desk#1", limit: "maxTokens", add: 5 } } : {};
        const request = requestOf(owner, index, { kind, ...asked });
        await owner.commit(opening(request));
        const outcome = await subject().decide(agentKey(), request.requestId, { ...approved, verdict }, NOW);
        const isFit = verdictsOf[kind].includes(verdict);
        expect([verdict, outcome.type]).toEqual([verdict, isFit ? "decided" : "unfit"]);
        expect(await stored(request.requestId)).toMatchObject({ status: isFit ? "decided" : "open" });
      }
      expect(await subject().inbox(agentKey())).toHaveLength(verdictsOf[kind].length);
    },
  );

  test("an unknown request is not found", async () => {
    await openAgent(subject());
    for (const [key, requestId] of [
      [agentKey(), "unknown"],
      [agentKey("nobody"), "unknown"],
    ] as const) {
      expect(await subject().decide(key, requestId, approved, NOW)).toEqual({ type: "notFound" });
    }
  });

  test("of many concurrent decisions one wins (F20)", async () => {
    const owner = await openAgent(subject());
    for (let index = 0; index < 20; index += 1) {
      const request = requestOf(owner, index);
      await owner.commit(opening(request));
      const people = Array.from({ length: 2 + (index % 7) }, (_, person) => `person ${person}`);
      const outcomes = await Promise.all(
        people.map((by) => subject().decide(agentKey(), request.requestId, { ...approved, by }, NOW)),
      );
      const winner = await stored(request.requestId);
      expect(outcomes.filter((outcome) => outcome.type === "decided")).toHaveLength(1);
      for (const outcome of outcomes) expect(outcome).toMatchObject({ request: winner });
    }
    expect(await subject().inbox(agentKey())).toHaveLength(20);
  });
}

const command: TurnCommand = { input: "go", actorId: null, limits: null, ifBusy: "queue" };

export function decisionKeysContract(subject: () => Stores): void {
  const key = "k1";
  const decidedWith = { key, turnId: TURN };

  test("the same decision with the same key returns the decided request, even after the turn went on", async () => {
    const owner = await openAgent(subject());
    const request = requestOf(owner, 0, { expiresAt: NOW + 500 });
    const { requestId } = request;
    await subject().openTurn(agentKey(), command, NOW);
    await owner.commit(opening(request));
    const { posted, ...decided } = {
      posted: [],
      ...(await subject().decide(agentKey(), requestId, approved, NOW, { key })),
    };
    expect([posted, decided]).toMatchObject([[ROOT], { type: "decided", request: { decidedWith } }]);
    const known = { ...decided, type: "known" };
    const again = () => subject().decide(agentKey(), requestId, { ...approved }, NOW + 900, { key });
    expect(await again()).toEqual(known);
    expect((await subject().inbox(agentKey())).filter(({ kind }) => kind === "decision")).toMatchObject([
      { requestId, decisionKey: key },
    ]);
    await owner.commit({ entries: [note("ended")], closedTurnId: TURN });
    expect(await again()).toEqual(known);
    expect(await subject().request(agentKey(), requestId)).toMatchObject({ decidedAt: NOW, decidedWith });
  });

  test("a used key is refused for another decision, another request and a turn", async () => {
    const owner = await openAgent(subject());
    const [first, second] = [requestOf(owner, 0).requestId, requestOf(owner, 1).requestId];
    await subject().openTurn(agentKey(), command, NOW);
    await owner.commit(opening(requestOf(owner, 0), requestOf(owner, 1)));
    await subject().decide(agentKey(), first, approved, NOW, { key });
    const taken = { type: "taken", turnId: TURN, requestId: first };
    expect(await subject().decide(agentKey(), first, rejected, NOW, { key })).toEqual(taken);
    expect(await subject().decide(agentKey(), second, approved, NOW, { key })).toEqual(taken);
    const turn = { ...command, key: { text: key, hash: "h" } };
    const conflict = { type: "conflict", turnId: TURN, requestId: first };
    expect(await subject().openTurn(agentKey(), turn, NOW)).toEqual(conflict);
    expect(await subject().openTurn(agentKey(), { ...turn, onlyKnown: true }, NOW)).toEqual(conflict);
    expect(await subject().turns({ tenant: TENANT })).toHaveLength(1);
    expect(await subject().request(agentKey(), second)).toMatchObject({ status: "open" });
    expect(await subject().decide(agentKey(), second, approved, NOW, { key: "k2" })).toMatchObject({ type: "decided" });
    expect(await subject().decide(agentKey(), second, approved, NOW)).toMatchObject({ type: "conflict" });
  });

  test("a key used by a turn is refused for a decision", async () => {
    const owner = await openAgent(subject());
    await subject().openTurn(agentKey(), { ...command, key: { text: key, hash: "h" } }, NOW);
    await owner.commit(opening(requestOf(owner, 0)));
    const { requestId } = requestOf(owner, 0);
    const outcome = await subject().decide(agentKey(), requestId, approved, NOW, { key });
    expect(outcome).toEqual({ type: "taken", turnId: TURN, requestId: undefined });
    expect(await subject().request(agentKey(), requestId)).toMatchObject({ status: "open" });
  });

  test("keys are unique within a tree; another tree may use the same key", async () => {
    const owner = await openAgent(subject());
    const kid = await openChild(owner, "kid");
    const other = await openAgent(subject(), { agentId: "other" });
    await subject().openTurn(agentKey(), command, NOW);
    await kid.commit(opening(requestOf(kid, 0)));
    await owner.commit(opening(requestOf(owner, 0)));
    await other.commit(opening(requestOf(other, 0)));
    const { requestId } = requestOf(kid, 0);
    const decided = await subject().decide(kid.key, requestId, approved, NOW, { key });
    expect(decided).toMatchObject({ type: "decided", request: { decidedWith } });
    const taken = { type: "taken", turnId: TURN, requestId };
    expect(await subject().decide(agentKey(), requestOf(owner, 0).requestId, approved, NOW, { key })).toEqual(taken);
    const elsewhere = await subject().decide(other.key, requestOf(other, 0).requestId, approved, NOW, { key });
    expect(elsewhere).toMatchObject({ type: "decided" });
  });

  test("many equal concurrent decisions count as one", async () => {
    const owner = await openAgent(subject());
    await owner.commit(opening(requestOf(owner, 0)));
    const { requestId } = requestOf(owner, 0);
    const outcomes = await Promise.all(
      Array.from({ length: 20 }, () => subject().decide(agentKey(), requestId, approved, NOW, { key })),
    );
    expect(outcomes.filter(({ type }) => type === "decided")).toHaveLength(1);
    expect(outcomes.filter(({ type }) => type === "known")).toHaveLength(19);
    expect(await subject().inbox(agentKey())).toHaveLength(1);
  });

  test("of a concurrent turn and decision with one key, one wins", async () => {
    const owner = await openAgent(subject());
    await owner.commit(opening(requestOf(owner, 0)));
    const { requestId } = requestOf(owner, 0);
    const types = await Promise.all(
      Array.from({ length: 10 }, async (_, index) => {
        if (index % 2 === 0) return (await subject().decide(agentKey(), requestId, approved, NOW, { key })).type;
        return (await subject().openTurn(agentKey(), { ...command, key: { text: key, hash: "h" } }, NOW)).type;
      }),
    );
    const meanings = types.filter((type) => type === "decided" || type === "opened");
    expect(meanings).toHaveLength(1);
    expect(types.filter((type) => type === "known")).toHaveLength(4);
  });

  test("a used key moves with its tree to another store", async () => {
    const source = memoryStores();
    const owner = await openAgent(source);
    await source.openTurn(agentKey(), command, NOW);
    await owner.commit(opening(requestOf(owner, 0)));
    const { requestId } = requestOf(owner, 0);
    await source.decide(agentKey(), requestId, approved, NOW, { key });
    await subject().importTree(JSON.parse(JSON.stringify(await exported(source))), here.processId);
    expect(await subject().decide(agentKey(), requestId, approved, NOW, { key })).toMatchObject({ type: "known" });
    const turn = { ...command, key: { text: key, hash: "h" } };
    expect(await subject().openTurn(agentKey(), turn, NOW)).toMatchObject({ type: "conflict", requestId });
  });
}
