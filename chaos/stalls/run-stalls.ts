import { type FaultPointName, faultPointNames, pointsElsewhere } from "../fault-point-names.ts";
import { countHits, type Hits, withServers } from "../faults/f2.ts";
import { withGround } from "../ground.ts";
import { type ChaosOptions, type ChaosReport, reportOf } from "../scenario.ts";
import { seededRandom } from "../../src/testing/simulation/seeded-random.ts";
import { summaryOf } from "../summary.ts";
import { runStall, type StallPlan, type StallResult } from "./round.ts";

/** Concurrent rounds, because a round mostly waits for the lease to expire. */
const LANES = 3;
/** Most attempts at a round whose stall did not occur. */
const MOST_TRIES = 6;

/** Fault points at which a process can stall. `reconcile.effect` is left out: it is passed only after a death. */
const points = faultPointNames.filter((name) => !pointsElsewhere.has(name) && name !== "reconcile.effect");

export interface Stalls {
  readonly name: string;
  readonly rounds: number;
  readonly leases: number;
  readonly how: StallPlan["how"];
  /** Default: all fault points that an undisturbed run passes. */
  readonly points?: readonly FaultPointName[] | undefined;
}

/** Stalls the owner of a tree, at one fault point after the other. */
export async function runStalls(options: ChaosOptions, stalls: Stalls): Promise<ChaosReport> {
  return await withServers(options.folder, (servers) =>
    withGround(options, async (ground) => {
      const stage = { ...servers, ground, folder: options.folder };
      const hits = await countHits(stage);
      const plans = plansOf(stalls, hits, options.seed);
      const results: StallResult[] = [];
      let next = 0;
      const lane = async (): Promise<void> => {
        for (let index = next; index < plans.length; index = next) {
          next += 1;
          const plan = plans[index];
          if (!plan) return;
          const result = await runUntilStalled(plan, (one) => runStall(stage, one));
          results[index] = result;
          const state = result.violations.length === 0 ? "ok" : `VIOLATED\n  ${result.violations.join("\n  ")}`;
          const { takenOverMs, staleRefused } = result;
          const figures = `taken over after ${Math.round(takenOverMs ?? 0)} ms, ${staleRefused} refused`;
          options.progress(`${index + 1}/${plans.length} ${plan.point}:${plan.hit} ${figures}: ${state}`);
        }
      };
      await Promise.all(Array.from({ length: LANES }, lane));
      return report(stalls.name, options.seed, results);
    }),
  );
}

function plansOf(
  { name, rounds, leases, how, points: chosen = points }: Stalls,
  hits: Hits,
  seed: number,
): StallPlan[] {
  const random = seededRandom(seed);
  return Array.from({ length: rounds }, (_, round) => {
    const point = chosen[round % chosen.length] ?? "commit.after";
    const hit = random.between(1, Math.max(1, Math.floor((hits[point] ?? 1) * 0.8)));
    return { name: `${name.toLowerCase()}-${round + 1}`, point, hit, leases, how };
  });
}

/** Passes during the agent's start are not counted, and there may be fewer commits, so try an earlier hit then. */
async function runUntilStalled(
  plan: StallPlan,
  run: (plan: StallPlan) => Promise<StallResult>,
  tries = MOST_TRIES,
): Promise<StallResult> {
  const result = await run(plan);
  if (result.hasStalled || result.violations.length > 0 || tries === 1) return result;
  return await runUntilStalled({ ...plan, name: `${plan.name}x`, hit: Math.ceil(plan.hit * 0.6) }, run, tries - 1);
}

function report(name: string, seed: number, results: readonly StallResult[]): ChaosReport {
  const sum = (of: (result: StallResult) => number): number => results.reduce((total, one) => total + of(one), 0);
  const counts = {
    operations: sum(({ turns }) => turns),
    succeeded: sum(({ completed }) => completed),
    violations: results.flatMap(({ violations }) => violations),
  };
  return reportOf({ name, seed }, counts, {
    rounds: results.length,
    stalls: sum(({ hasStalled }) => Number(hasStalled)),
    roundsWithRefusedWrites: sum(({ staleRefused }) => Number(staleRefused > 0)),
    staleWritesRefused: sum(({ staleRefused }) => staleRefused),
    takenOverMs: summaryOf(results.flatMap(({ takenOverMs }) => takenOverMs ?? [])),
  });
}
