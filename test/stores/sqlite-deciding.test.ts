import { DatabaseSync } from "node:sqlite";
import { array, assert, asyncProperty, boolean, constantFrom, nat, record } from "fast-check";
import { expect, test } from "vitest";
import type { DecideOutcome, Stores } from "../../src/stores/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { note } from "../contracts/entry-fixtures.ts";
import { NOW, TENANT, TURN } from "../contracts/names.ts";
import { approved, opening, rejected, requestOf } from "../contracts/request-fixtures.ts";
import { agentKey, openAgent } from "../contracts/stores-fixtures.ts";
import { amount } from "../support/full.ts";
import { temporaryFile } from "./temporary-file.ts";

/** One caller of `decide`: the client, the decision, its time, and the delay after the previous call. */
const decider = record({
  isMine: boolean(),
  decision: constantFrom(approved, rejected),
  isLate: boolean(),
  turnsBefore: nat(2),
  /** Turns of the event loop for which another connection holds the file's lock when the call starts. */
  lockedTurns: constantFrom(0, 0, 0, 0, 0, 2),
});

async function turns(count: number): Promise<void> {
  for (let turn = 0; turn < count; turn += 1) await new Promise((resolve) => setImmediate(resolve));
}

async function openBoth(path: string): Promise<{ mine: Stores; theirs: Stores; close: () => Promise<void> }> {
  const [mine, theirs] = [sqliteStores(path), sqliteStores(path)];
  const close = async (): Promise<void> => {
    await mine.close();
    await theirs.close();
  };
  return { mine, theirs, close };
}

test("of two clients of one file that decide one request exactly one wins, and all callers receive its decision (F20)", async () => {
  const path = temporaryFile();
  const { mine, theirs, close } = await openBoth(path);
  const locker = new DatabaseSync(path);
  const owner = await openAgent(mine);
  let index = 0;
  let contested = 0;
  const scenario = asyncProperty(
    array(decider, { minLength: 2, maxLength: 8 }),
    boolean(),
    async (deciders, hasEnd) => {
      const request = requestOf(owner, index, { expiresAt: hasEnd ? NOW + 100 : null });
      const { requestId } = request;
      index += 1;
      await owner.commit(opening(request));
      const acknowledged = (await theirs.inbox(agentKey())).map((item) => item.key);
      const waiting: Promise<DecideOutcome>[] = [];
      for (const { isMine, decision, isLate, turnsBefore, lockedTurns } of deciders) {
        await turns(turnsBefore);
        if (lockedTurns > 0) locker.exec("BEGIN IMMEDIATE");
        const at = isLate ? NOW + 100 : NOW + 99;
        waiting.push((isMine ? mine : theirs).decide(agentKey(), requestId, decision, at));
        if (lockedTurns === 0) continue;
        await turns(lockedTurns);
        locker.exec("ROLLBACK");
      }
      const outcomes = await Promise.all(waiting);
      const winner = await theirs.request(agentKey(), requestId);
      expect(winner?.status).toBe("decided");
      for (const outcome of outcomes) expect(outcome).toMatchObject({ request: winner });
      // The caller whose decision was posted: the winner, or the first after the end.
      expect(outcomes.filter((outcome) => "posted" in outcome && outcome.posted.length > 0)).toHaveLength(1);
      const wasExpired = winner?.decision?.verdict === "expired";
      expect(outcomes.filter((outcome) => outcome.type === "decided")).toHaveLength(wasExpired ? 0 : 1);
      expect(!wasExpired || (hasEnd && deciders.some(({ isLate }) => isLate))).toBe(true);
      const items = (await mine.inbox(agentKey())).filter((item) => !acknowledged.includes(item.key));
      expect(items).toMatchObject([{ kind: "decision", requestId, decision: winner?.decision }]);
      if (new Set(deciders.map(({ isMine }) => isMine)).size === 2) contested += 1;
      await owner.commit({ entries: [note("took it")], acknowledged: items.map((item) => item.key) });
    },
  );
  await assert(scenario, { numRuns: amount(200, 33), seed: 20 });
  expect(contested).toBeGreaterThan(amount(100, 15));
  locker.close();
  await close();
});

test("a request that the other client opened, decided or closed is known when a turn ends", async () => {
  const { mine, theirs, close } = await openBoth(temporaryFile());
  const owner = await openAgent(mine);
  const [first, second] = [requestOf(owner, 0), requestOf(owner, 1)];
  await owner.commit(opening(first, second));
  await theirs.decide(agentKey(), first.requestId, approved, NOW);
  await owner.commit({ entries: [note("ended")], closedTurnId: TURN });
  expect((await theirs.requests({ tenant: TENANT })).map((request) => request.status)).toEqual(["decided", "closed"]);
  expect(await theirs.decide(agentKey(), second.requestId, approved, NOW)).toMatchObject({ type: "conflict" });
  await close();
});
