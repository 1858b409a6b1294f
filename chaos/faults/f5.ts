import { setTimeout as delay } from "node:timers/promises";
import { type Disturbance, runLoad } from "../load/run-load.ts";
import type { ChaosScenario } from "../scenario.ts";

const ROUNDS = 200;
const SHORT_ROUNDS = 4;
const ROUNDS_A_BATCH = 10;
const LONGEST_LIFE_MS = 900;
const LONGEST_ABSENCE_MS = 200;

/** SIGKILL of Redis in the middle of the work, and its restart from its log, which is synced with every write. */
const killed: Omit<Disturbance, "rounds"> = {
  name: "F5",
  roundsABatch: ROUNDS_A_BATCH,
  mayRefuse: true,
  disturb: async ({ server, random }) => {
    await delay(random.between(50, LONGEST_LIFE_MS));
    await server.kill();
    await delay(random.between(0, LONGEST_ABSENCE_MS));
    await server.launch();
    return [];
  },
};

/** A round is one kill. */
export const f5: ChaosScenario = {
  name: "F5",
  title: "Redis SIGKILL and restart with appendfsync always, under load: no acknowledged write lost, none half-written",
  on: ["redis"],
  run: (options) => runLoad(options, { ...killed, rounds: options.rounds ?? (options.short ? SHORT_ROUNDS : ROUNDS) }),
};
