/**
 * A worker process for agents and tools: `node chaos/workers/worker.ts ORDERS` (JSON). SIGTERM makes it exit gracefully, as
 * in a deployment; SIGUSR2 makes it collect garbage and report its memory; the scenarios kill it with SIGKILL.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { z } from "zod";
import { createRuntime } from "../../src/index.ts";
import { endWithParent } from "../end-with-parent.ts";
import { storesAt } from "../stores-at.ts";
import { witnessed } from "../witness.ts";
import { queuesAt } from "./queues-at.ts";
import { queuedTeam, TOOL_QUEUE } from "./team.ts";
import type { Weight } from "./weight.ts";

const ordersSchema = z.object({
  store: z.string(),
  queues: z.string(),
  ledger: z.string(),
  model: z.string(),
  leaseMs: z.int().positive(),
  /** Concurrent agents and calls. */
  agents: z.int().positive(),
  calls: z.int().positive(),
  /** Path of the log of the stores' answers; `null` for no log. */
  witness: z.string().nullable(),
  drainMs: z.int().positive(),
  crowd: z.int().positive().optional(),
});
export type WorkerOrders = z.infer<typeof ordersSchema>;

/** The JSON lines that it writes. */
export type WorkerLine =
  | { readonly type: "up"; readonly pid: number; readonly url?: string }
  | ({ readonly type: "weighed" } & Weight)
  | { readonly type: "drained"; readonly milliseconds: number; readonly metrics: unknown };

function tell(line: WorkerLine): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

const orders = ordersSchema.parse(JSON.parse(process.argv[2] ?? "{}"));
const { store, witness, leaseMs, agents, calls } = orders;
const plain = storesAt(store);
const queues = queuesAt(orders.queues, leaseMs);
const runtime = await createRuntime({
  agents: queuedTeam(orders.ledger, orders.model, orders.crowd),
  stores: witness === null ? plain : witnessed(plain, witness),
  queues,
  role: "worker",
  work: { agents, queues: { [TOOL_QUEUE]: { concurrency: calls } } },
  leaseMs,
});
process.on("SIGUSR2", () => {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  collect();
  const { heapUsed, external, rss } = process.memoryUsage();
  void runtime.metrics().then(({ liveAgents }) => {
    tell({ type: "weighed", pid: process.pid, heapBytes: heapUsed + external, rssBytes: rss, liveAgents });
  });
});
process.once("SIGTERM", () => {
  const begun = performance.now();
  void runtime.metrics().then(async (metrics) => {
    await runtime.drain({ timeoutMs: orders.drainMs });
    tell({ type: "drained", milliseconds: Math.round(performance.now() - begun), metrics });
  });
});
endWithParent({ onTerminate: false });
tell({ type: "up", pid: process.pid });
