import { join } from "node:path";
import { withGround } from "../ground.ts";
import type { Attempt } from "../ledger/effect-ledger.ts";
import { LineReader } from "../line-log.ts";
import { startServer } from "../processes.ts";
import { type ChaosOptions, type ChaosReport, reportOf } from "../scenario.ts";
import type { PeopleFault } from "./orders.ts";
import { type PeoplePlan, type PeopleResult, type PeopleStage, runPeopleRound } from "./round.ts";

/** Concurrent rounds, because a round mostly waits. */
const LANES = 3;
/** Most attempts at a round whose process did not die at its fault. */
const MOST_TRIES = 6;

/** Runs each plan until its faults occurred, and sums up the results. */
export async function runPlans(
  name: string,
  options: ChaosOptions,
  plans: readonly PeoplePlan[],
  isShown: (result: PeopleResult) => boolean,
): Promise<ChaosReport> {
  const log = join(options.folder, "ledger.jsonl");
  const ledger = await startServer("ledger/server.ts", [log]);
  try {
    return await withGround(options, async (ground) => {
      const stage: PeopleStage = { ground, ledger: { address: ledger.address, log: new LineReader<Attempt>(log) } };
      return reportOfPlans(name, options, await runLanes(stage, options, plans, isShown), isShown);
    });
  } finally {
    await ledger.stop();
  }
}

async function runLanes(
  stage: PeopleStage,
  { progress }: ChaosOptions,
  plans: readonly PeoplePlan[],
  isShown: (result: PeopleResult) => boolean,
): Promise<PeopleResult[]> {
  const results: PeopleResult[] = [];
  let next = 0;
  const lane = async (): Promise<void> => {
    for (let index = next; index < plans.length; index = next) {
      next += 1;
      const plan = plans[index];
      if (!plan) return;
      const result = await runUntilShown(stage, plan, isShown);
      results[index] = result;
      const state = result.violations.length === 0 ? "ok" : `VIOLATED\n  ${result.violations.join("\n  ")}`;
      progress(`${index + 1}/${plans.length} ${plan.name}: ${result.deaths} deaths: ${state}`);
    }
  };
  await Promise.all(Array.from({ length: LANES }, lane));
  return results;
}

function reportOfPlans(
  name: string,
  { seed }: ChaosOptions,
  results: readonly PeopleResult[],
  isShown: (result: PeopleResult) => boolean,
): ChaosReport {
  const sum = (of: (result: PeopleResult) => number): number => results.reduce((total, one) => total + of(one), 0);
  return reportOf(
    { name, seed },
    {
      operations: results.length,
      succeeded: sum((result) => Number(result.completed && isShown(result))),
      violations: results.flatMap(({ violations }) => violations),
    },
    {
      rounds: results.length,
      deaths: sum(({ deaths }) => deaths),
      deathsInBetween: sum(({ deathsInBetween }) => deathsInBetween),
    },
  );
}

/**
 * On a busy machine commits are batched, so that a late hit may never be reached; and if all calls were rejected, no tool
 * runs. The round is then repeated with earlier hits, and finally with the first commit.
 */
async function runUntilShown(
  stage: PeopleStage,
  plan: PeoplePlan,
  isShown: (result: PeopleResult) => boolean,
  tries = MOST_TRIES,
): Promise<PeopleResult> {
  const result = await runPeopleRound(stage, plan);
  if (isShown(result) || result.violations.length > 0 || tries === 1) return result;
  const lives = plan.lives.map((life) => ({ ...life, fault: life.fault && earlier(life.fault) }));
  return await runUntilShown(stage, { ...plan, name: `${plan.name}x`, lives }, isShown, tries - 1);
}

function earlier(fault: PeopleFault): PeopleFault {
  return fault.hit > 1 ? { ...fault, hit: Math.floor(fault.hit * 0.7) } : { ...fault, name: "commit.after" };
}
