import { drawPrograms } from "../programs/draw.ts";
import { FORKS, playForks } from "../programs/forks.ts";
import { type ChaosOptions, type ChaosReport, type ChaosScenario, reportOf } from "../scenario.ts";
import { seededRandom } from "../../src/testing/simulation/seeded-random.ts";

const ROUNDS = 1_000;
const SHORT_ROUNDS = 24;

/** Forks random programs at random points. A round is one fork. */
export const f36: ChaosScenario = {
  name: "F36",
  title: "forks of random programs whose processes die: no tool with an effect outside runs, and every fork ends",
  on: ["sqlite", "memory"],
  run: runForks,
};

export async function runForks(options: ChaosOptions): Promise<ChaosReport> {
  const { seed, rounds, short, progress, stores = "sqlite" } = options;
  const most = rounds ?? (short ? SHORT_ROUNDS : ROUNDS);
  const programs = drawPrograms(seed, Math.ceil(most / FORKS));
  const violations: string[] = [];
  let [forks, deaths, recorded, failed] = [0, 0, 0, 0];
  for (const [index, program] of programs.entries()) {
    const played = await playForks(program, seededRandom(seed + index), stores === "memory" ? "memory" : "sqlite");
    forks += played.forks;
    deaths += played.deaths;
    recorded += played.recorded;
    failed += played.failed;
    violations.push(...played.faults.map((fault) => `program ${index}: ${fault}`));
    if (index % 20 === 19) progress(`${forks} forks with ${deaths} deaths, ${violations.length} violations`);
  }
  return reportOf(
    { name: f36.name, seed },
    { operations: forks, succeeded: forks - failed, violations },
    { deaths, recorded },
  );
}
