import { setTimeout as delay } from "node:timers/promises";
import { InvalidInputError, StoreUnavailableError } from "../../src/errors/index.ts";
import { createRuntime } from "../../src/index.ts";
import { withRedis } from "../ground.ts";
import { type Disturbance, runLoad, type Scene } from "../load/run-load.ts";
import type { ChaosOptions, ChaosReport, ChaosScenario } from "../scenario.ts";
import { redisPlace, storesAt } from "../stores-at.ts";

const ROUNDS = 50;
const SHORT_ROUNDS = 4;
const ROUNDS_A_BATCH = 10;
const LONGEST_WORK_MS = 600;
const LONGEST_FULL_MS = 1_200;
/** Share of rounds in which memory stays full for longer than a lease, and for how long, in milliseconds. */
const LONG_SHARE = 0.2;
const LONG_FULL_MS = 3_500;
/** Most bytes that still fit, so that memory becomes full during the work. */
const MOST_ROOM = 400_000;

const evicting = [
  "allkeys-lru",
  "allkeys-lfu",
  "allkeys-random",
  "volatile-lru",
  "volatile-lfu",
  "volatile-random",
  "volatile-ttl",
];

const filled: Omit<Disturbance, "rounds"> = {
  name: "F8",
  roundsABatch: ROUNDS_A_BATCH,
  mayRefuse: true,
  disturb: async (scene) => {
    const { server, random } = scene;
    await delay(random.between(20, LONGEST_WORK_MS));
    const client = server.client();
    const used = Number(/used_memory:(\d+)/.exec(await client.info("memory"))?.[1]);
    await client.config("SET", "maxmemory", String(used + random.between(0, MOST_ROOM)));
    await delay(random.next() < LONG_SHARE ? LONG_FULL_MS : random.between(50, LONGEST_FULL_MS));
    // Set the limit below the current use.
    await client.config("SET", "maxmemory", "1mb");
    const faults = await refusalFaults(scene);
    await client.config("SET", "maxmemory", "0");
    client.disconnect();
    return faults;
  },
};

/** A write is refused as retryable. */
async function refusalFaults({ place }: Scene): Promise<string[]> {
  const stores = storesAt(place);
  try {
    const now = Date.now();
    await stores.registerProcess({ processId: "late", pid: process.pid, bootId: "chaos" }, now);
    return ["a write was taken though the memory was full"];
  } catch (error) {
    const isTold = error instanceof StoreUnavailableError && error.retryable && error.details["code"] === "OOM";
    return isTold ? [] : [`a write was refused as ${String(error)}`];
  } finally {
    await stores.close();
  }
}

/** Fills the memory under load repeatedly. Then sets an evicting policy, with which no runtime may start. */
export const f8: ChaosScenario = {
  name: "F8",
  title: "Redis full (maxmemory), under load: refused as retryable, nothing half-written; no start on an evicting one",
  on: ["redis"],
  run: async (options) => {
    const rounds = options.rounds ?? (options.short ? SHORT_ROUNDS : ROUNDS);
    return withPolicies(await runLoad(options, { ...filled, rounds }), options);
  },
};

async function withPolicies(report: ChaosReport, { progress }: ChaosOptions): Promise<ChaosReport> {
  const found: string[] = [];
  for (const policy of evicting) {
    found.push(
      ...(await withRedis({ settings: ["--maxmemory-policy", policy] }, ({ url }) => startFaults(url, policy))),
    );
  }
  progress(`${evicting.length} evicting policies: ${found.length === 0 ? "refused" : found.join("; ")}`);
  return {
    ...report,
    operations: report.operations + evicting.length,
    succeeded: report.succeeded + evicting.length - found.length,
    violations: report.violations + found.length,
    policiesRefused: evicting.length - found.length,
    firstViolations: [...report.firstViolations, ...found],
  };
}

async function startFaults(url: string, policy: string): Promise<string[]> {
  const stores = storesAt(redisPlace(url, "evicting:"));
  try {
    const runtime = await createRuntime({ agents: [], stores });
    await runtime.shutdown();
    return [`${policy}: a runtime started`];
  } catch (error) {
    const isTold = error instanceof InvalidInputError && error.message.includes(policy);
    return isTold ? [] : [`${policy}: it was refused as ${String(error)}`];
  } finally {
    await stores.close();
  }
}
