import { setTimeout as delay } from "node:timers/promises";
import { cutLogs, logSizes } from "../../test/support/redis-log.ts";
import { type Disturbance, type LoadServer, onPostgres, runLoad, runLoadOn, type Scene } from "../load/run-load.ts";
import type { ChaosScenario } from "../scenario.ts";
import { steadyNow } from "../witness.ts";

const ROUNDS = 200;
const SHORT_ROUNDS = 4;
const ROUNDS_A_BATCH = 10;
const LONGEST_LIFE_MS = 900;
const SHORTEST_ABSENCE_MS = 20;
const LONGEST_ABSENCE_MS = 200;
/** Longest period of writes that `appendfsync everysec` may lose, in milliseconds. */
const LONGEST_UNSYNCED_MS = 1_000;

/** Kills the server under load and restarts it from its log, which is synced with every write. */
const killed: Omit<Disturbance<LoadServer>, "rounds"> = {
  name: "F5",
  roundsABatch: ROUNDS_A_BATCH,
  mayRefuse: true,
  disturb: async (scene) => {
    await delay(scene.random.between(50, LONGEST_LIFE_MS));
    await scene.server.kill();
    await startAgain(scene);
    return [];
  },
};

/**
 * The same with a log that is synced once a second. A kill alone loses nothing, because the system still has the written
 * data. So the log is truncated to its state of up to a second earlier, as after a power cut.
 */
const forgetful: Omit<Disturbance, "rounds"> = {
  ...killed,
  name: "F5-everysec",
  mayLose: true,
  settings: ["--appendfsync", "everysec", "--auto-aof-rewrite-percentage", "0"],
  disturb: async (scene) => {
    const { server, random, folder } = scene;
    await delay(random.between(50, LONGEST_LIFE_MS));
    const synced = logSizes(folder);
    await delay(random.between(0, LONGEST_UNSYNCED_MS));
    await server.kill();
    cutLogs(folder, synced);
    await startAgain(scene);
    return [];
  },
};

async function startAgain({ server, random, restarts }: Scene<LoadServer>): Promise<void> {
  await delay(random.between(SHORTEST_ABSENCE_MS, LONGEST_ABSENCE_MS));
  restarts.push(steadyNow());
  await server.launch();
}

/** A round is one kill. */
export const f5: ChaosScenario = {
  name: "F5",
  title:
    "Redis or Postgres SIGKILL and restart, every write synced, under load: no acknowledged write lost, none half-written",
  on: ["redis", "postgres"],
  run: (options) => {
    const disturbance = { ...killed, rounds: options.rounds ?? (options.short ? SHORT_ROUNDS : ROUNDS) };
    return options.stores === "postgres" ? runLoadOn(options, disturbance, onPostgres) : runLoad(options, disturbance);
  },
};

/** A round is one kill. */
export const f5everysec: ChaosScenario = {
  name: "F5-everysec",
  title:
    "the same with appendfsync everysec and the last writes lost: no keyed effect doubled, no fork, each loss reported",
  on: ["redis"],
  run: (options) =>
    runLoad(options, { ...forgetful, rounds: options.rounds ?? (options.short ? SHORT_ROUNDS : ROUNDS) }),
};
