import { withGround } from "../ground.ts";
import type { FaultPointName } from "../fault-point-names.ts";
import { type ChaosOptions, type ChaosReport, type ChaosScenario, reportOf } from "../scenario.ts";
import { type SeededRandom, seededRandom } from "../../src/testing/simulation/seeded-random.ts";
import { summaryOf } from "../summary.ts";
import type { Fault } from "../worker-process.ts";
import { withServers } from "./f2.ts";
import { type RoundPlan, type RoundResult, runRound } from "./f2-round.ts";

const ROUNDS = 1_000;
const SHORT_ROUNDS = 24;
/** Concurrent rounds, because a round mostly waits. */
const LANES = 3;
/** Share of rounds in which a survivor is killed too. */
const SECOND_DEATHS = 0.35;
const WIDTHS = [1, 2, 3, 4, 5, 6, 7, 8] as const;
/** All agents of a process make twice 36 calls. The kill is at one of them, but not at the last. */
const MOST_HITS = 60;
/** Consecutive kills that interrupted no turn during its calls; with this many, the scenario itself is broken. */
const MOST_MISSES = 20;

/** Fault points before, in and after a call, at the commit of its result, and where its code calls the model. */
const points: readonly FaultPointName[] = [
  "call.gated",
  "tool.intent",
  "tool.effect",
  "tool.result",
  "commit.before",
  "commit.after",
  "generate.effect",
];

/**
 * A process with eight agents of 1 to 8 concurrent calls each is killed. A round is a turn interrupted during its calls.
 */
export const f23: ChaosScenario = {
  name: "F23",
  title:
    "SIGKILL inside 1 to 8 parallel calls: each call has one result, in legal order, before the model is asked again",
  on: ["sqlite", "redis"],
  run: runF23,
};

export async function runF23(options: ChaosOptions): Promise<ChaosReport> {
  const { seed, short, folder, progress } = options;
  const wanted = options.rounds ?? (short ? SHORT_ROUNDS : ROUNDS);
  return await withServers(folder, (servers) =>
    withGround(options, async (ground) => {
      const random = seededRandom(seed);
      const results: RoundResult[] = [];
      let [begun, met, misses] = [0, 0, 0];
      const lane = async (): Promise<void> => {
        while (met < wanted) {
          begun += 1;
          const result = await runRound({ ...servers, ground }, planOf(begun, random));
          results.push(result);
          const before = met;
          met += result.cutOff.length;
          misses = met > before ? 0 : misses + 1;
          if (misses > MOST_MISSES) throw new Error(`${misses} deaths in a row met no turn in its calls`);
          for (const violation of result.violations) progress(`VIOLATED: ${violation}`);
          if (Math.floor(met / 100) > Math.floor(before / 100)) progress(`${met}/${wanted} turns in their calls`);
        }
      };
      await Promise.all(Array.from({ length: LANES }, lane));
      return report(seed, results);
    }),
  );
}

function planOf(number: number, random: SeededRandom): RoundPlan {
  const recovers = random.next() < 0.5;
  const second = random.next() < SECOND_DEATHS ? [faultOf(random)] : [];
  const name = `calls-${number}`;
  const agentIds = WIDTHS.map((width) => `${name}-wide-${width}`);
  return { name, agent: "fan", agentIds, faults: [faultOf(random), ...second], wantedDeaths: 1, recovers };
}

function faultOf(random: SeededRandom): Fault {
  return { name: random.pick(points), hit: random.between(1, MOST_HITS) };
}

function report(seed: number, results: readonly RoundResult[]): ChaosReport {
  const sum = (of: (result: RoundResult) => number): number => results.reduce((total, one) => total + of(one), 0);
  const cutOff = results.flatMap((result) => result.cutOff);
  const byCalls = Object.fromEntries(
    WIDTHS.map((calls) => [calls, cutOff.filter((one) => one.calls === calls).length]),
  );
  return reportOf(
    { name: f23.name, seed },
    {
      operations: sum(({ turns }) => turns),
      succeeded: sum(({ completed }) => completed),
      violations: results.flatMap(({ violations }) => violations),
    },
    {
      deaths: sum(({ deaths }) => deaths),
      cutOff: cutOff.length,
      byCalls,
      callsWithoutResult: summaryOf(cutOff.map(({ open }) => open)),
      recoveredMs: summaryOf(results.flatMap(({ recoveredMs }) => recoveredMs ?? [])),
    },
  );
}
