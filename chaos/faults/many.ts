import { setTimeout as delay } from "node:timers/promises";
import type { RuntimeMetrics } from "../../src/index.ts";
import { journalViolations } from "../../src/testing/simulation/journal-checks.ts";
import { restViolations } from "../../src/testing/simulation/rest-checks.ts";
import { evidenceOf } from "../evidence.ts";
import { taskPrefix } from "../model/script.ts";
import { type ChaosOptions, type ChaosReport, type ChaosScenario, reportOf } from "../scenario.ts";
import { storesAt } from "../stores-at.ts";
import { weighAgent } from "../workers/weight.ts";
import { withWorkers, type WorkersStage } from "../workers/stage.ts";

const CHILDREN = 2_000;
const SHORT_CHILDREN = 100;
const LEASE_MS = 10_000;
/** Keys of queues without jobs: metadata, dead letters and streams. Their number does not depend on the number of jobs. */
const MOST_QUEUE_KEYS = 40;

/** One parent that calls many subagents in one answer. A round is one subagent. */
export const many: ChaosScenario = {
  name: "MANY",
  title:
    "2,000 subagents of one parent over two workers: all done; the memory of the waiting parent, the keys left in Redis",
  on: ["redis"],
  run: runMany,
};

export async function runMany(options: ChaosOptions): Promise<ChaosReport> {
  const { seed, short, folder } = options;
  const crowd = options.rounds ?? (short ? SHORT_CHILDREN : CHILDREN);
  const size = { workers: 2, agents: 50, calls: 2, leaseMs: LEASE_MS, isWitnessed: false, crowd };
  return await withWorkers(folder, size, async (stage) => {
    const { place, pool } = stage;
    const { result, seconds, parent } = await runTurn(stage);
    await delay(1_000);
    const left = await leftIn(stage);
    await pool.drain();
    const [tree] = await evidenceOf(place);
    const children = tree?.agents.filter(({ record }) => record.parentAgentId !== null) ?? [];
    const done = children.filter(({ entries }) =>
      entries.some((entry) => entry.type === "turn.ended" && entry.outcome === "completed"),
    ).length;
    const violations = [
      ...(result.status === "completed" ? [] : [`its turn ended ${result.status}, ${result.stopReason}`]),
      ...(children.length === crowd ? [] : [`${children.length} children of ${crowd}`]),
      ...(tree ? [...restViolations(tree), ...tree.agents.flatMap((one) => journalViolations(one))] : ["it is gone"]),
      ...(left.queueKeys > MOST_QUEUE_KEYS ? [`${left.queueKeys} keys of queues are left`] : []),
      ...pool.faults,
    ];
    const metrics = pool.drains.map((one) => one.metrics as RuntimeMetrics);
    return reportOf(
      { name: many.name, seed },
      { operations: crowd, succeeded: done, violations },
      { turnSeconds: seconds, parent, ...left, workers: metrics },
    );
  });
}

/** Runs the parent's turn and measures the parent's memory. */
async function runTurn({ client, pool, place }: WorkersStage) {
  const stores = storesAt(place);
  const isOver = new AbortController();
  try {
    const begun = performance.now();
    const agent = await client.agent("crowd", { agentId: "many" });
    await agent.start();
    const weight = weighAgent({ pool, stores }, "many", isOver.signal);
    const result = await agent.executeTurn(`${taskPrefix}many`).result;
    const seconds = Math.round((performance.now() - begun) / 100) / 10;
    isOver.abort();
    return { result, seconds, parent: await weight };
  } finally {
    isOver.abort();
    await stores.close();
  }
}

/** The remaining keys of the tree and of queues, and the memory of Redis. */
async function leftIn({ server }: WorkersStage) {
  if (!server) throw new Error("this scenario runs on Redis");
  const client = server.client();
  try {
    const keys = await client.keys("*");
    const queueKeys = keys.filter((key) => key.includes("queue:")).length;
    const [, bytes = "0"] = /used_memory:(\d+)/.exec(await client.info("memory")) ?? [];
    return { storeKeys: keys.length - queueKeys, queueKeys, redisMegabytes: Math.round(Number(bytes) / 100_000) / 10 };
  } finally {
    client.disconnect();
  }
}
