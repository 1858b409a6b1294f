import { setTimeout as delay } from "node:timers/promises";
import { type Disturbance, runLoad } from "../load/run-load.ts";
import type { ChaosScenario } from "../scenario.ts";

const ROUNDS = 1_000;
const SHORT_ROUNDS = 40;
const ROUNDS_A_BATCH = 200;
/** Time to reconnect, even on a busy machine, because cutting a connection that is not open tests nothing. */
const SHORTEST_GAP_MS = 20;
const LONGEST_GAP_MS = 180;

/** Flushes scripts and kills connections, both for commands and for subscriptions. */
const cut: Omit<Disturbance, "rounds"> = {
  name: "F9",
  roundsABatch: ROUNDS_A_BATCH,
  mayRefuse: false,
  disturb: async ({ server, random }) => {
    await delay(random.between(SHORTEST_GAP_MS, LONGEST_GAP_MS));
    const what = random.pick(["scripts", "commands", "listeners"]);
    const client = server.client();
    if (what === "scripts") await client.script("FLUSH");
    else await client.call("CLIENT", "KILL", "TYPE", what === "commands" ? "normal" : "pubsub", "SKIPME", "yes");
    client.disconnect();
    return [];
  },
};

/** A round is one such disturbance. */
export const f9: ChaosScenario = {
  name: "F9",
  title: "SCRIPT FLUSH and CLIENT KILL mid-turn, under load: no caller notices",
  on: ["redis"],
  run: (options) => runLoad(options, { ...cut, rounds: options.rounds ?? (options.short ? SHORT_ROUNDS : ROUNDS) }),
};
