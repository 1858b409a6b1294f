import { setTimeout as delay } from "node:timers/promises";
import type { PostgresServer } from "../../test/support/postgres-server.ts";
import { type Disturbance, onPostgres, runLoad, runLoadOn } from "../load/run-load.ts";
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

/** Which backends of Postgres are ended: those of commands, those that listen, or those in the midst of a statement. */
const backends = {
  commands: "query NOT LIKE '%pg_notify(%'",
  listeners: "query LIKE '%pg_notify(%'",
  statements: "state = 'active'",
} as const;

const ended: Omit<Disturbance<PostgresServer>, "rounds"> = {
  ...cut,
  disturb: async ({ server, random }) => {
    await delay(random.between(SHORTEST_GAP_MS, LONGEST_GAP_MS));
    const which = backends[random.pick(["commands", "listeners", "statements"] as const)];
    await server.query(
      `SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'troupe' AND ${which}`,
    );
    return [];
  },
};

/** A round is one such disturbance. */
export const f9: ChaosScenario = {
  name: "F9",
  title: "SCRIPT FLUSH and CLIENT KILL, or pg_terminate_backend, mid-turn, under load: no caller notices",
  on: ["redis", "postgres"],
  run: (options) => {
    const rounds = options.rounds ?? (options.short ? SHORT_ROUNDS : ROUNDS);
    if (options.stores === "postgres") return runLoadOn(options, { ...ended, rounds }, onPostgres);
    return runLoad(options, { ...cut, rounds });
  },
};
