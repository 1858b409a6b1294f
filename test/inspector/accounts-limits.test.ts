import * as fc from "fast-check";
import { expect, it } from "vitest";
import { type Account, activeMsAt } from "../../src/budget/index.ts";
import type { AccountAt } from "../../src/inspector/run-model/account-at.ts";
import { AccountFold } from "../../src/inspector/run-model/account-fold.ts";
import { type Budget, defineAgent, subagent } from "../../src/index.ts";
import type { JournalRow } from "../../src/state/index.ts";
import type { TreeHead } from "../../src/stores/index.ts";
import { type ScriptedReply, scriptedModel } from "../../src/testing/index.ts";
import { randomCases } from "../support/full.ts";
import { elapse, loopTurns } from "../support/journal-probes.ts";
import { asks } from "../support/leads.ts";
import { describeRuntimes, type Stage } from "../support/runtimes.ts";
import { rowsOf } from "../support/stored-programs.ts";
import { look } from "../machines/scenario-tools.ts";

const maybe = <Value>(value: fc.Arbitrary<Value>) => fc.option(value, { nil: undefined, freq: 2 });

/** Random limits, low enough to be reached. */
const budget = fc.record({
  maxSteps: maybe(fc.integer({ min: 1, max: 8 })),
  maxTreeSteps: maybe(fc.integer({ min: 1, max: 20 })),
  maxToolCalls: maybe(fc.integer({ min: 0, max: 8 })),
  maxTreeToolCalls: maybe(fc.integer({ min: 0, max: 16 })),
  maxTokens: maybe(fc.integer({ min: 500, max: 20_000 })),
  maxCost: maybe(fc.integer({ min: 1, max: 30 }).map((cents) => cents / 100)),
  maxSeconds: maybe(fc.integer({ min: 1, max: 20 })),
  strict: maybe(fc.boolean()),
  finalAnswer: maybe(fc.boolean()),
}) satisfies fc.Arbitrary<Budget>;

const plan = fc.record({
  life: maybe(budget),
  turn: budget,
  child: budget,
  mode: fc.constantFrom("await" as const, "background" as const),
  onEnd: fc.constantFrom("keep" as const, "wake" as const),
  /** For each turn, the number of children of each round. */
  turns: fc.array(fc.array(fc.integer({ min: 0, max: 4 }), { minLength: 1, maxLength: 3 }), {
    minLength: 1,
    maxLength: 3,
  }),
  /** The tool rounds of a child, and the delays of its model. */
  childRounds: fc.integer({ min: 0, max: 2 }),
  delays: fc.array(fc.integer({ min: 0, max: 6 }), { minLength: 1, maxLength: 5 }),
  usage: fc.record({ inputTokens: fc.integer({ min: 1, max: 400 }), outputTokens: fc.integer({ min: 1, max: 300 }) }),
});
type Plan = typeof plan extends fc.Arbitrary<infer Value> ? Value : never;

const price = { inputPerMillion: 5, outputPerMillion: 20 };

function leadOf({ turn, child, mode, onEnd, turns, childRounds, delays, usage }: Plan) {
  const kid = defineAgent({
    name: "kid",
    price,
    tools: [look],
    maxOutputTokens: 400,
    model: scriptedModel(async ({ messages, toolChoice }, { index }): Promise<ScriptedReply> => {
      await loopTurns(delays[index % delays.length] ?? 0);
      const done = messages.filter(({ role }) => role === "tool").length;
      return done < childRounds && toolChoice !== "none"
        ? { toolCalls: [{ name: "look" }], usage }
        : { text: "ok", usage };
    }),
  });
  const rounds = turns.flat();
  let asked = 0;
  const model = scriptedModel(({ toolChoice }): ScriptedReply => {
    const children = toolChoice === "none" ? 0 : (rounds[asked] ?? 0);
    asked += 1;
    if (children === 0) return { text: "done", usage };
    const calls = Array.from({ length: children }, (_, index) => asks("kid", `part ${index}`));
    return { toolCalls: [...calls, { name: "look" }], usage };
  });
  const spawn = subagent(kid, { budget: child, mode, ...(mode === "background" ? { onEnd } : {}) });
  return defineAgent({ name: "lead", price, tools: [look, spawn], budget: turn, maxOutputTokens: 400, model });
}

/** Runs a team, and compares its stored accounts after each of its rows. */
async function played(stage: Stage, random: Plan, agentId: string): Promise<readonly TreeHead[]> {
  const runtime = await stage.open({ agents: [leadOf(random)] });
  const stores = stage.look();
  const heads: Promise<TreeHead | undefined>[] = [];
  let last = "";
  runtime.subscribe(({ cursor }) => {
    const row = cursor?.split(".")[0] ?? last;
    if (row !== last) heads.push(stores.treeHead("default", agentId));
    last = row;
  });
  const agent = await runtime.agent("lead", { agentId, ...(random.life ? { budget: random.life } : {}) });
  await agent.start();
  for (const _turn of random.turns) {
    const result = agent.executeTurn("go").result.catch(() => undefined);
    await elapse(stage.clock, result);
  }
  await elapse(stage.clock, atRest(stage, agentId));
  heads.push(stores.treeHead("default", agentId));
  await runtime.shutdown();
  return (await Promise.all(heads)).flatMap((head) => head ?? []);
}

async function atRest(stage: Stage, rootAgentId: string): Promise<void> {
  for (;;) {
    const agents = await stage.look().listAgents({ tenant: "default", rootAgentId, limit: 1_000 });
    if (agents.every(({ openTurnId }) => openTurnId === null)) return;
    await loopTurns(5);
  }
}

function exactOf({ id, parentId, limits, used, reserved, unconfirmed }: Account | AccountAt) {
  const { activeMs: _time, ...amounts } = used;
  const { maxActiveMs: _about, ...exact } = limits;
  return { id, parentId, limits: exact, used: amounts, reserved, unconfirmed };
}

const byId = (one: { readonly id: string }, other: { readonly id: string }): number => (one.id < other.id ? -1 : 1);

interface Seen {
  compared: number;
  inFlight: number;
  refusals: number;
  background: number;
  /** The largest allowed difference in working time, in milliseconds. */
  time: number;
}

/** The fold after each row next to the stored accounts at that time. */
function compare(rows: readonly JournalRow[], heads: readonly TreeHead[], seen: Seen): void {
  const fold = new AccountFold();
  const [first] = heads;
  fold.learn(first?.accounts.filter(({ turnId }) => turnId === null) ?? []);
  const left = [...heads].toSorted((one, other) => one.cursor - other.cursor);
  for (const { agentId, cursor, entries } of rows) {
    for (const entry of entries) fold.apply(agentId, entry);
    while (left[0] && left[0].cursor <= cursor) {
      const head = left.shift();
      if (head?.cursor !== cursor) continue;
      const at = entries.at(-1)?.at ?? 0;
      expect(fold.accounts.map(exactOf).toSorted(byId), `after row ${cursor}`).toEqual(
        head.accounts.map(exactOf).toSorted(byId),
      );
      const held = head.accounts
        .filter(({ parentId }) => parentId === null)
        .reduce((sum, { reserved }) => sum + reserved.tokens, 0);
      expect(fold.inFlight.reduce((sum, { tokens }) => sum + tokens, 0)).toBe(held);
      seen.compared += 1;
      seen.inFlight += fold.inFlight.length;
      seen.background += head.accounts.filter(({ id }) => id.startsWith("background:")).length;
      for (const account of head.accounts) {
        const known = fold.account(account.id);
        if (known) seen.time = Math.max(seen.time, Math.abs(activeMsAt(account, at) - activeMsAt(known, at)));
      }
    }
  }
  seen.refusals += fold.refusalCount;
}

/** Few cases per test, so that even a busy machine completes them within the timeout. */
const casesOfPart = 15;
const cases = randomCases(300, 60);
const parts = Array.from({ length: Math.ceil(cases / casesOfPart) }, (_, part) => part);

describeRuntimes(
  "accounts at any row",
  (stage) => {
    const seen: Seen = { compared: 0, inFlight: 0, refusals: 0, background: 0, time: 0 };

    it.each(parts)("equal the stored ones at that row, under all limits: part %i", async (part) => {
      let number = 0;
      const property = fc.asyncProperty(plan, async (random) => {
        const agentId = `team-${number}`;
        number += 1;
        const heads = await played(stage(), random, agentId);
        compare(await rowsOf(stage().look(), agentId), heads, seen);
      });
      const before = seen.compared;
      const seed = Number(process.env["TROUPE_SEED"] ?? 20_261_123) + part;
      await fc.assert(property, { numRuns: casesOfPart, seed });
      expect(seen.compared).toBeGreaterThan(before);
    });

    it("the cases contained some work", () => {
      expect(seen.compared).toBeGreaterThan(5 * cases);
      expect(seen.inFlight).toBeGreaterThan(cases);
      expect(seen.refusals).toBeGreaterThan(cases / 4);
      expect(seen.background).toBeGreaterThan(0);
      // The clock advances in steps of 50 ms here, and no process dies.
      expect(seen.time).toBeLessThan(500);
    });

    it("a clone is independent of its original", async () => {
      const [random] = fc.sample(plan, { numRuns: 1, seed: 7 });
      if (!random) return;
      await played(stage(), random, "cloned");
      const rows = await rowsOf(stage().look(), "cloned");
      const folds = [new AccountFold()];
      for (const { agentId, entries } of rows) {
        for (const entry of entries) {
          const next = folds.at(-1)?.clone();
          next?.apply(agentId, entry);
          if (next) folds.push(next);
        }
      }
      const again = new AccountFold();
      const entries = rows.flatMap(({ agentId, entries: own }) => own.map((entry) => ({ agentId, entry })));
      for (const [index, { agentId, entry }] of entries.entries()) {
        expect(folds[index]?.accounts).toEqual(again.accounts);
        again.apply(agentId, entry);
      }
      expect(folds.at(-1)?.accounts).toEqual(again.accounts);
    });
  },
  ["memory"],
);
