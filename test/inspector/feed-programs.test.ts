import * as fc from "fast-check";
import { expect, it } from "vitest";
import { machinesAt } from "../../src/inspector/replay/machines.ts";
import { AccountFold } from "../../src/inspector/run-model/account-fold.ts";
import type { AgentMoment } from "../../src/inspector/run-model/agent-moment.ts";
import { RunLog } from "../../src/inspector/run-model/run-log.ts";
import { RunMoments } from "../../src/inspector/run-model/run-moments.ts";
import { Feed } from "../../src/inspector/feed/feed.ts";
import type { JournalRow } from "../../src/state/index.ts";
import type { Stores } from "../../src/stores/index.ts";
import { type SeededRandom, seededRandom } from "../../src/testing/simulation/seeded-random.ts";
import { randomCases } from "../support/full.ts";
import { RandomPlay } from "../support/random-play.ts";
import { type TurnPlan, turnPlan } from "../support/random-turns.ts";
import { emptyTally } from "../support/random-world.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { rowsOf } from "../support/stored-programs.ts";
import { isCaughtUp, readerOf } from "./feed-fixtures.ts";

const CURSORS_OF_A_PROGRAM = 8;

/** The state of an agent as the page shows it, by the state names of its machines. */
function shownOf({ phase, turnId, running, requests }: AgentMoment) {
  const isAtRest = phase === "ready" || phase === "done" || phase === "stopped";
  const isFixed =
    phase === "created" || phase === "starting" || phase === "paused" || phase === "shutdown" || phase === "failed";
  const lifecycle = isAtRest ? "ready" : isFixed ? phase : "busy";
  return {
    lifecycle,
    turnId,
    running: running.map(({ callId }) => callId).toSorted(),
    requests: requests.map(({ requestId }) => requestId).toSorted(),
  };
}

/** The same from the agent's whole journal, folded by its machines. */
function foldedOf(agentId: string, journal: readonly JournalRow[]) {
  const { agent, turn } = machinesAt(agentId, journal);
  const entries = journal.flatMap((row) => row.entries);
  const open = turn?.isOver === false ? turn.turnId : null;
  const running = new Set<string>();
  const requests = new Set<string>();
  for (const entry of entries) {
    if (entry.type === "turn.started" || entry.type === "turn.ended") [running, requests].forEach((set) => set.clear());
    if (entry.type === "tool.started") running.add(entry.callId);
    if (entry.type === "tool.settled") running.delete(entry.callId);
    if (entry.type === "request.opened") requests.add(entry.requestId);
    if (entry.type === "request.decided") requests.delete(entry.requestId);
  }
  return {
    lifecycle: agent.path[0],
    turnId: open,
    running: [...running].toSorted(),
    requests: [...requests].toSorted(),
  };
}

function expectAgents(moments: RunMoments, log: RunLog, rows: readonly JournalRow[], cursor: number): number {
  const { agents } = moments.at(log.countUpTo(cursor));
  const past = rows.filter((row) => row.cursor <= cursor);
  for (const agentId of new Set(past.map((row) => row.agentId))) {
    const moment = agents[log.indexOfAgent(agentId)];
    if (!moment) throw new Error(`the page does not contain ${agentId} at ${cursor}`);
    const own = past.filter((row) => row.agentId === agentId);
    expect({ agentId, cursor, ...shownOf(moment) }).toEqual({ agentId, cursor, ...foldedOf(agentId, own) });
  }
  return past.length;
}

interface Found {
  cursors: number;
  exact: number;
  readonly gaps: Set<string>;
}

/** Reads a run through the feed, as a page does, and compares its state with the stored one. */
async function look(stores: Stores, runId: string, random: SeededRandom, found: Found): Promise<void> {
  const feed = new Feed();
  feed.add({ stores, tenant: "default" });
  const reader = await readerOf(feed, runId, { after: 0, credit: 1_000 });
  await reader.until(isCaughtUp);
  const log = new RunLog();
  for (const message of reader.messages) {
    if (message.type === "agents") log.addAgents(message.agents);
    else if (message.type === "rows") log.append(message.rows);
  }
  const rows = await rowsOf(stores, runId);
  expect(log.head).toBe(rows.at(-1)?.cursor);
  const moments = new RunMoments(log);
  const stored = await feed.storedAccounts(runId);
  moments.learn(stored.accounts);
  const whole = new AccountFold();
  whole.learn(stored.accounts.filter(({ id }) => id.startsWith("agent:")));
  const picked = Array.from({ length: CURSORS_OF_A_PROGRAM }, () => random.pick(rows).cursor);
  // Back and forth, as a scrubber moves.
  for (const cursor of [...picked, log.head]) {
    found.cursors += 1;
    expectAgents(moments, log, rows, cursor);
    const fold = new AccountFold();
    fold.learn(stored.accounts.filter(({ id }) => id.startsWith("agent:")));
    for (const row of rows) if (row.cursor <= cursor) for (const entry of row.entries) fold.apply(row.agentId, entry);
    const { accounts } = moments.at(log.countUpTo(cursor));
    expect(accounts.accounts.toSorted(byId)).toEqual(fold.accounts.toSorted(byId));
  }
  const head = moments.at(log.length).accounts.accounts;
  expect(head.map(amountsOf).toSorted(byId)).toEqual(stored.accounts.map(amountsOf).toSorted(byId));
  for (const { agentId } of log.agents) {
    for (const { seq } of await feed.prompts(runId, agentId)) {
      const prompt = await feed.prompt(runId, agentId, seq);
      if (prompt.isExact) found.exact += 1;
      else found.gaps.add(prompt.why ?? "without a reason");
    }
  }
  feed.close();
}

const byId = (one: { readonly id: string }, other: { readonly id: string }): number => (one.id < other.id ? -1 : 1);

interface Amounted {
  readonly id: string;
  readonly used: Readonly<
    Record<"steps" | "treeSteps" | "toolCalls" | "treeToolCalls" | "tokens" | "costMicros", number>
  >;
  readonly reserved: object;
  readonly unconfirmed: object;
}

function amountsOf({ id, used, reserved, unconfirmed }: Amounted) {
  const { steps, treeSteps, toolCalls, treeToolCalls, tokens, costMicros } = used;
  return { id, steps, treeSteps, toolCalls, treeToolCalls, tokens, costMicros, reserved, unconfirmed };
}

/** Few cases per test, so that even a busy machine completes them within the timeout. */
const casesOfPart = 10;
const cases = randomCases(100, 30);
const parts = Array.from({ length: Math.ceil(cases / casesOfPart) }, (_, part) => part);

describeRuntimes(
  "the page's fold of the feed",
  (stage) => {
    const found: Found = { cursors: 0, exact: 0, gaps: new Set() };

    it.each(parts)("equals the stored state at random times of random programs: part %i", async (part) => {
      const stores = stage().look();
      const seed = Number(process.env["TROUPE_SEED"] ?? 20_261_123) + part;
      const random = seededRandom(seed);
      let number = 0;
      const property = fc.asyncProperty(turnPlan, async (plan: TurnPlan) => {
        const agentId = `root-${number}`;
        number += 1;
        expect(await new RandomPlay(stage(), stores, plan, { agentId, tally: emptyTally() }).play()).toEqual([]);
        await look(stores, agentId, random, found);
      });
      await fc.assert(property, { numRuns: casesOfPart, seed, endOnFailure: true });
    });

    it("the cases contained some work", () => {
      expect(found.cursors).toBeGreaterThan(200);
      expect(found.exact).toBeGreaterThan(2 * cases);
      const reasons = /^(the conversation was cleared after this call|the history compiler "broken)/;
      expect([...found.gaps].filter((why) => !reasons.test(why))).toEqual([]);
    });
  },
  ["memory"],
);
