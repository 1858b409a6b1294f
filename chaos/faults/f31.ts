import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { type ChaosOptions, type ChaosReport, type ChaosScenario, reportOf } from "../scenario.ts";
import { type SeededRandom, seededRandom } from "../../src/testing/simulation/seeded-random.ts";
import { WrittenFile } from "./f31-file.ts";

const ROUNDS = 200;
const SHORT_ROUNDS = 5;
/** Rounds of writing, killing and checking per file. */
const ROUNDS_OF_A_FILE = 8;
const LONGEST_LIFE_MS = 120;
const WRITERS = ["team~left", "team~right"] as const;
/** Writing time of the process that stays, including pauses. */
const STAY_MS = 4_000;
const PAUSE_MS = 2;
const MOST_BATCHES_OF_A_VISIT = 20;
/** Most time between two visits. */
const LONGEST_WAIT_MS = 60;
/** Bytes that still fit before the disk is full. */
const LAST_BYTES = 256 * 1024;
const BATCHES_WITH_ROOM = 20;

/**
 * Kills two writers during writes, repeatedly on one file; then visits of a file in use; then a full disk. A round is two
 * kills.
 */
export const f31: ChaosScenario = {
  name: "F31",
  title: "SQLite: SIGKILL mid-write, two writers, full; the file is whole, nothing acknowledged is lost, no raw error",
  run: runF31,
};

async function runF31(options: ChaosOptions): Promise<ChaosReport> {
  const { seed, folder } = options;
  const random = seededRandom(seed);
  const rounds = options.rounds ?? (options.short ? SHORT_ROUNDS : ROUNDS);
  const files: WrittenFile[] = [];
  for (let done = 0; done < rounds; done += ROUNDS_OF_A_FILE) {
    const file = new WrittenFile(join(folder, `store-${files.length}.db`));
    files.push(file);
    await killWriters(file, Math.min(ROUNDS_OF_A_FILE, rounds - done), random);
    await receiveVisitors(file, random);
    await fillDisk(file);
    options.progress(`${Math.min(rounds, done + ROUNDS_OF_A_FILE)} of ${rounds} rounds`);
  }
  const sum = (field: "acknowledged" | "unavailable" | "killed" | "visits"): number =>
    files.reduce((total, file) => total + file[field], 0);
  const violations = files.flatMap((file) => file.violations);
  const operations = sum("acknowledged") + sum("unavailable");
  const counts = { operations, succeeded: sum("acknowledged"), violations };
  return reportOf({ name: "F31", seed }, counts, { rounds, killed: sum("killed"), visits: sum("visits") });
}

async function killWriters(file: WrittenFile, rounds: number, random: SeededRandom): Promise<void> {
  for (let round = 1; round <= rounds; round += 1) {
    const lives = WRITERS.map((agentId) => ({ agentId, killAfterMs: random.between(1, LONGEST_LIFE_MS) }));
    await Promise.all(lives.map(({ agentId, killAfterMs }) => file.write(agentId, { killAfterMs })));
    await file.audit(`round ${round}`);
  }
}

/** One writer stays while others open the file, write a little and close it. Finally the first is killed. */
async function receiveVisitors(file: WrittenFile, random: SeededRandom): Promise<void> {
  const [resident, visitor] = WRITERS;
  let isOver = false;
  const stay = file.write(resident, { killAfterMs: STAY_MS, pauseMs: PAUSE_MS }).finally(() => {
    isOver = true;
  });
  while (!isOver) {
    await delay(random.between(1, LONGEST_WAIT_MS));
    await file.write(visitor, { batches: random.between(1, MOST_BATCHES_OF_A_VISIT) });
    if (!isOver) file.visits += 1;
  }
  await stay;
  await file.audit("after visits");
}

/** Writes until the disk is full, then frees space and continues. */
async function fillDisk(file: WrittenFile): Promise<void> {
  const [agentId] = WRITERS;
  await file.write(agentId, { maxBytes: file.size() + LAST_BYTES });
  if (file.full !== 1) file.violations.push("a full disk was not reported as SQLITE_FULL");
  await file.audit("full disk");
  const before = file.acknowledged;
  await file.write(agentId, { batches: BATCHES_WITH_ROOM });
  if (file.acknowledged !== before + BATCHES_WITH_ROOM) file.violations.push("with room again, not all was written");
  await file.audit("room again");
}
