import { join } from "node:path";
import * as fc from "fast-check";
import { currentProcess, memoryStores, type Stores } from "../../src/stores/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { Play, type Played } from "../budgets/play.ts";
import { type BudgetPlan, interleavings, trees } from "../budgets/plan.ts";
import { type ChaosOptions, type ChaosReport, type ChaosScenario, reportOf } from "../scenario.ts";

/** Plans per store before the store is discarded. */
const PLANS_A_STORE = 200;

interface Sums {
  plans: number;
  operations: number;
  waits: number;
  refusals: number;
  mostPassed: number;
  mostAtOnce: number;
  reservedAtRest: number;
}

type OpenStores = (name: string) => Stores;

/** F14: reservations and waits in random order, in memory and on SQLite, compared with plain sums. */
export const budgets: ChaosScenario = {
  name: "budgets",
  title: "F14, F16: calls reserve, wait and settle in random order; no account is exceeded, no call waits forever",
  run: runBudgets,
};

/** A round is one plan: 10,000 interleavings of 8 holders, and a tenth as many trees, on each store. */
export async function runBudgets(options: ChaosOptions): Promise<ChaosReport> {
  const { seed, short, rounds = short ? 300 : 10_000, folder, progress } = options;
  const sums: Sums = {
    plans: 0,
    operations: 0,
    waits: 0,
    refusals: 0,
    mostPassed: 0,
    mostAtOnce: 0,
    reservedAtRest: 0,
  };
  const violations: string[] = [];
  const kinds: readonly (readonly [string, OpenStores])[] = [
    ["memory", () => memoryStores()],
    ["sqlite", (name) => sqliteStores(join(folder, `${name}.db`))],
  ];
  for (const [kind, open] of kinds) {
    for (const [name, plans, runs] of [
      ["interleavings", interleavings, rounds],
      ["trees", trees, Math.max(1, Math.ceil(rounds / 10))],
    ] as const) {
      progress(`${runs} ${name} on ${kind}`);
      violations.push(...(await playAll({ plans, runs, seed, name: `${kind}-${name}`, open }, sums)));
    }
  }
  const { operations, plans, ...figures } = sums;
  const counts = { operations, succeeded: violations.length === 0 ? operations : 0, violations };
  return reportOf({ name: budgets.name, seed }, counts, { plans, ...figures });
}

interface Series {
  readonly plans: fc.Arbitrary<BudgetPlan>;
  readonly runs: number;
  readonly seed: number;
  readonly name: string;
  readonly open: OpenStores;
}

async function playAll({ plans, runs, seed, name, open }: Series, sums: Sums): Promise<string[]> {
  let count = 0;
  let stores: Stores | undefined;
  const me = currentProcess("chaos");
  const play = async (plan: BudgetPlan): Promise<Played> => {
    if (!stores || count % PLANS_A_STORE === 0) {
      await stores?.close();
      stores = open(`${name}-${count}`);
      await stores.registerProcess(me, 0);
    }
    count += 1;
    return await new Play(plan, { stores, processId: me.processId, rootAgentId: `tree-${count}` }).run();
  };
  const property = fc.asyncProperty(plans, async (plan) => {
    const played = await play(plan);
    add(sums, played);
    if (played.faults.length > 0) throw new Error(played.faults.join("; "));
  });
  const outcome = await fc.check(property, { seed, numRuns: runs, endOnFailure: true });
  await stores?.close();
  if (!outcome.failed) return [];
  const words = outcome.errorInstance instanceof Error ? outcome.errorInstance.message : "an error";
  return [
    `${name}: ${words} (seed ${seed}, path ${outcome.counterexamplePath}): ${JSON.stringify(outcome.counterexample)}`,
  ];
}

function add(sums: Sums, played: Played): void {
  sums.plans += 1;
  sums.operations += played.operations;
  sums.waits += played.waits;
  sums.refusals += played.refusals;
  sums.mostPassed = Math.max(sums.mostPassed, played.mostPassed);
  sums.mostAtOnce = Math.max(sums.mostAtOnce, played.mostAtOnce);
  sums.reservedAtRest += played.reservedAtRest;
}
