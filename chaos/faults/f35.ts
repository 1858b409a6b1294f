import { writeFileSync } from "node:fs";
import { join } from "node:path";
import { withPostgres, withRedis } from "../ground.ts";
import type { Failure, PlayedResult } from "../programs/audit.ts";
import type { Batch } from "../programs/batch.ts";
import { playKilled, Processes } from "../programs/lanes.ts";
import { reproduce, shrink, testOf } from "../programs/shrink.ts";
import { type ChaosOptions, type ChaosReport, type ChaosScenario, reportOf } from "../scenario.ts";
import { seededRandom } from "../../src/testing/simulation/seeded-random.ts";
import { postgresPlace, redisPlace } from "../stores-at.ts";

const ROUNDS = 10_000;
const SHORT_ROUNDS = 72;
/** Programs per store, and how many of them are played concurrently. */
const BATCH = { sqlite: 100, redis: 50, postgres: 50, memory: 100 } as const;
const SHORT_BATCH = 24;
const WIDTH = 40;
/** The same for programs whose turns run in workers, which must keep sending heartbeats. */
const QUEUED_WIDTH = 16;
/** Concurrent batches. */
const LANES = { sqlite: 2, redis: 3, postgres: 3, memory: 2 } as const;
const LARGEST_SEED = 2 ** 30;
/** The run stops after this many failed programs. */
const ENOUGH_FAILURES = 3;
/** Time for each of the two phases of shrinking a failing program. */
const SHRINK_MS = 60_000;
const MINUTE_MS = 60_000;

/** Plays random programs whose processes are killed every few seconds. A round is one program. */
export const f35: ChaosScenario = {
  name: "F35",
  title: "random programs, and a SIGKILL every few seconds: all predictions of a model hold, and no agent is stuck",
  on: ["sqlite", "redis", "postgres", "memory"],
  run: runPrograms,
};

/** Plays one batch. */
type Player = (batch: Batch, index: number) => Promise<PlayedResult>;

export async function runPrograms(options: ChaosOptions): Promise<ChaosReport> {
  const { stores = "sqlite", seed } = options;
  const processes = new Processes();
  try {
    if (stores === "memory") {
      return await report(options, (batch) => processes.playInMemory(batch, WIDTH), processes.complaints);
    }
    const playAt = (locationOf: (index: number) => string): Player => {
      return (batch, index) => {
        const place = locationOf(index);
        const isQueued = stores === "redis" && index % 2 === 1;
        return playKilled(processes, batch, {
          place,
          random: seededRandom(seed + index),
          width: isQueued ? QUEUED_WIDTH : WIDTH,
          isQueued,
        });
      };
    };
    if (stores === "sqlite") {
      const player = playAt((index) => join(options.folder, `batch-${index}.db`));
      return await report(options, player, processes.complaints);
    }
    if (stores === "postgres") {
      return await withPostgres(({ url }) =>
        report(
          options,
          playAt((index) => postgresPlace(url, `batch-${index}`)),
          processes.complaints,
        ),
      );
    }
    return await withRedis({}, ({ url }) =>
      report(
        options,
        playAt((index) => redisPlace(url, `batch-${index}:`)),
        processes.complaints,
      ),
    );
  } finally {
    await processes.close();
  }
}

async function report(options: ChaosOptions, play: Player, complaints: readonly string[]): Promise<ChaosReport> {
  const { seed, folder, progress } = options;
  const begun = performance.now();
  const results = await playAll(options, play);
  const seconds = (performance.now() - begun) / 1_000;
  const failures = results.flatMap((result) => result.failures);
  const violations = [...complaints];
  for (const [index, failure] of failures.entries()) {
    violations.push(`${failure.root}: ${failure.faults.join("; ")}`);
    if (index >= ENOUGH_FAILURES) continue;
    const path = join(folder, `program-${index}.test.ts`);
    progress(`${failure.root} failed; it is made smaller`);
    const test = await asTest(failure);
    writeFileSync(path, test);
    progress(`${path}\n${test}`);
  }
  const sum = (of: (result: PlayedResult) => number): number => results.reduce((total, one) => total + of(one), 0);
  const operations = sum(({ programs }) => programs);
  return reportOf(
    { name: f35.name, seed },
    { operations, succeeded: sum(({ succeeded }) => succeeded), violations },
    {
      deaths: sum(({ deaths }) => deaths),
      agents: sum(({ agents }) => agents),
      turns: sum(({ turns }) => turns),
      calls: sum(({ calls }) => calls),
      programsPerSecond: Math.round((operations / seconds) * 10) / 10,
    },
  );
}

/** Plays batches in each lane until the requested number of programs or minutes is reached. */
async function playAll(options: ChaosOptions, play: Player): Promise<PlayedResult[]> {
  const { rounds, minutes, short, folder, progress, stores = "sqlite" } = options;
  const end = minutes === undefined ? undefined : performance.now() + minutes * MINUTE_MS;
  const most = rounds ?? (short ? SHORT_ROUNDS : ROUNDS);
  const seeds = seededRandom(options.seed);
  const results: PlayedResult[] = [];
  let [drawn, index] = [0, 0];
  const isEnough = (): boolean => {
    const failed = results.reduce((sum, { failures }) => sum + failures.length, 0);
    return failed >= ENOUGH_FAILURES || (end === undefined ? drawn >= most : performance.now() > end);
  };
  const lane = async (): Promise<void> => {
    while (!isEnough()) {
      const largest = short ? SHORT_BATCH : BATCH[stores];
      const left = end === undefined ? most - drawn : largest;
      const batch: Batch = {
        seed: seeds.between(1, LARGEST_SEED),
        count: Math.min(largest, left),
        folder: join(folder, `batch-${index}`),
      };
      drawn += batch.count;
      index += 1;
      const result = await play(batch, index - 1);
      results.push(result);
      const state = result.failures.length === 0 ? "ok" : `FAILED ${result.failures.map(({ root }) => root).join()}`;
      progress(`${drawn} programs, ${result.programs} of them with ${result.deaths} deaths: ${state}`);
      for (const { root, faults } of result.failures) progress(`${root}: ${faults.join("; ")}`);
    }
  };
  await Promise.all(Array.from({ length: LANES[stores] }, lane));
  return results;
}

/** The failing program as a test: shrunk, or unchanged if it does not fail by itself. */
async function asTest({ program, faults }: Failure): Promise<string> {
  const found = await reproduce(program, { limitMs: SHRINK_MS });
  if (!found) return `// It does not fail by itself at any fault point.\n${testOf({ program, faults, options: {} })}`;
  return testOf(await shrink(found, { limitMs: SHRINK_MS }));
}
