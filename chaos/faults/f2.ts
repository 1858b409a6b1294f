import { join } from "node:path";
import { type FaultPointName, faultPointNames, pointsElsewhere } from "../fault-point-names.ts";
import { withGround } from "../ground.ts";
import type { Attempt } from "../ledger/effect-ledger.ts";
import { LineReader } from "../line-log.ts";
import type { BilledCallLine } from "../model/script.ts";
import { startServer } from "../processes.ts";
import { type ChaosOptions, type ChaosReport, type ChaosScenario, reportOf } from "../scenario.ts";
import { type SeededRandom, seededRandom } from "../../src/testing/simulation/seeded-random.ts";
import { summaryOf } from "../summary.ts";
import { type Fault, runWorker } from "../worker-process.ts";
import { type RoundPlan, type RoundResult, runRound, type Stage } from "./f2-round.ts";

const ROUNDS = 25;
const SHORT_ROUNDS = 1;
/** Concurrent rounds, because a round mostly waits. */
const LANES = 3;
/** Share of rounds in which a survivor is killed too. */
const SECOND_DEATHS = 0.35;
/** Most attempts at a round whose fault did not occur. */
const MOST_TRIES = 8;

export type Hits = Readonly<Record<string, number>>;

/** SIGKILL at every fault point: after intent, effect, result, commit, acknowledgement. A round is one kill. */
export const f2: ChaosScenario = {
  name: "F2",
  title:
    "SIGKILL at each fault point; keyed calls have one effect, once calls at most one, nothing committed is repeated",
  on: ["sqlite", "redis", "postgres"],
  run: (options) =>
    runFaults(
      "F2",
      options,
      faultPointNames.filter((name) => !pointsElsewhere.has(name)),
    ),
};

/** The same at selected fault points. */
export async function runFaults(
  scenario: string,
  options: ChaosOptions,
  names: readonly FaultPointName[],
): Promise<ChaosReport> {
  const { seed } = options;
  return await withServers(options.folder, (servers) =>
    withGround(options, async (ground) => {
      const stage = { ...servers, ground };
      const hits = await countHits(stage);
      const rounds = options.rounds ?? (options.short ? SHORT_ROUNDS : ROUNDS);
      const plans = plansOf(names, { rounds, hits, random: seededRandom(seed) });
      return report({ name: scenario, seed }, plans, await runAll(stage, plans, options));
    }),
  );
}

/** Runs a function with an effect ledger and a model, each in its own process. */
export async function withServers<Found>(
  folder: string,
  run: (servers: Pick<Stage, "ledger" | "model">) => Promise<Found>,
): Promise<Found> {
  const ledgerLog = join(folder, "ledger.jsonl");
  const modelLog = join(folder, "model.jsonl");
  const ledger = await startServer("ledger/server.ts", [ledgerLog]);
  const model = await startServer("model/server.ts", [modelLog]);
  try {
    return await run({
      ledger: { address: ledger.address, log: new LineReader<Attempt>(ledgerLog) },
      model: { address: model.address, log: new LineReader<BilledCallLine>(modelLog) },
    });
  } finally {
    await ledger.stop();
    await model.stop();
  }
}

/** How often an undisturbed run passes each fault point. The model and the ledger answer the same each time. */
export async function countHits(stage: Stage): Promise<Hits> {
  const { ground, ledger, model } = stage;
  const store = ground.locationOf("undisturbed");
  const orders = { store, ledger: ledger.address, model: model.address, agentIds: ["undisturbed"] };
  const end = await runWorker({ ...orders, recovers: false, counts: true });
  const line = end.lines.find(({ type }) => type === "hits");
  if (line?.type === "hits") return line.hits;
  throw new Error(`the undisturbed run did not finish: ${end.stdout}${end.stderr}`);
}

interface Drawing {
  readonly rounds: number;
  readonly hits: Hits;
  readonly random: SeededRandom;
}

function plansOf(names: readonly FaultPointName[], drawing: Drawing): RoundPlan[] {
  return names.flatMap((name) => Array.from({ length: drawing.rounds }, (_, round) => planOf(name, round, drawing)));
}

/** Spreads the hits of a point over its rounds. Leaves out the last hits, because another run may have fewer commits. */
function planOf(name: FaultPointName, round: number, { rounds, hits, random }: Drawing): RoundPlan {
  const recovers = random.next() < 0.5;
  const label = `${name.replace(".", "-")}-${round + 1}`;
  // Only a survivor reconciles, after another process died inside a `once` call.
  if (name === "reconcile.effect") {
    const first = { name: "tool.effect", hit: random.between(1, Math.max(1, hits["tool.effect"] ?? 1)) } as const;
    return { name: label, faults: [first, { name, hit: 1 }], wantedDeaths: 2, recovers };
  }
  const passes = Math.max(1, Math.floor((hits[name] ?? 1) * 0.9));
  const hit = 1 + Math.floor(((round + random.next()) * passes) / rounds);
  const second = random.next() < SECOND_DEATHS ? [anyFault(hits, random)] : [];
  return { name: label, faults: [{ name, hit }, ...second], wantedDeaths: 1, recovers };
}

function anyFault(hits: Hits, random: SeededRandom): Fault {
  const name = random.pick(faultPointNames.filter((one) => (hits[one] ?? 0) > 0));
  return { name, hit: random.between(1, Math.max(1, Math.floor((hits[name] ?? 1) / 3))) };
}

async function runAll(stage: Stage, plans: readonly RoundPlan[], options: ChaosOptions): Promise<RoundResult[]> {
  const results: RoundResult[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let index = next; index < plans.length; index = next) {
      next += 1;
      const plan = plans[index];
      if (!plan) return;
      const result = await runUntilStruck(stage, plan);
      results[index] = result;
      const fault = plan.faults[0];
      const state = result.violations.length === 0 ? "ok" : `VIOLATED\n  ${result.violations.join("\n  ")}`;
      options.progress(`${index + 1}/${plans.length} ${fault?.name}:${fault?.hit} ${result.deaths} deaths: ${state}`);
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  return results;
}

/**
 * On a busy machine commits are batched, so that a late hit may never be reached, or the first death may not be in a `once`
 * call. The round is then repeated with an earlier hit.
 */
async function runUntilStruck(stage: Stage, plan: RoundPlan, tries = MOST_TRIES): Promise<RoundResult> {
  const result = await runRound(stage, plan);
  const [first, ...others] = plan.faults;
  const isDone = result.deaths >= plan.wantedDeaths || result.violations.length > 0 || tries === 1;
  if (isDone || !first) return result;
  const hit = first.hit > 1 ? Math.ceil(first.hit * 0.7) : MOST_TRIES;
  return await runUntilStruck(
    stage,
    { ...plan, name: `${plan.name}x`, faults: [{ ...first, hit }, ...others] },
    tries - 1,
  );
}

function report(
  run: { readonly name: string; readonly seed: number },
  plans: readonly RoundPlan[],
  results: readonly RoundResult[],
): ChaosReport {
  const sum = (of: (result: RoundResult) => number): number => results.reduce((total, one) => total + of(one), 0);
  const deathsAt: Record<string, number> = {};
  for (const [index, { faults }] of plans.entries()) {
    for (const { name } of faults.slice(0, results[index]?.deaths)) deathsAt[name] = (deathsAt[name] ?? 0) + 1;
  }
  return reportOf(
    run,
    {
      operations: sum(({ turns }) => turns),
      succeeded: sum(({ completed }) => completed),
      violations: results.flatMap(({ violations }) => violations),
    },
    {
      rounds: results.length,
      deaths: sum(({ deaths }) => deaths),
      deathsAt,
      unconfirmedCalls: sum(({ unconfirmed }) => unconfirmed),
      takenUpMs: summaryOf(results.flatMap(({ takenUpMs }) => takenUpMs ?? [])),
      recoveredMs: summaryOf(results.flatMap(({ recoveredMs }) => recoveredMs ?? [])),
    },
  );
}
