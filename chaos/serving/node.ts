/**
 * A node: `node chaos/serving/node.ts ORDERS` (JSON). It serves the API over HTTP, and runs the turns of any tree, as the
 * others do. SIGTERM has it leave; SIGKILL is what it is there for.
 */
import { z } from "zod";
import { createRuntime } from "../../src/index.ts";
import { apiSurface, redisSharing, serveRuntime, tokenAuth } from "../../src/server/index.ts";
import { endWithParent } from "../end-with-parent.ts";
import { storesAt } from "../stores-at.ts";
import { queuesAt } from "../workers/queues-at.ts";
import type { WorkerLine } from "../workers/worker.ts";
import { identitiesOf, servedTeam } from "./team.ts";

const ordersSchema = z.object({
  store: z.string(),
  /** Of the Redis of the stores. */
  redis: z.string(),
  ledger: z.string(),
  model: z.string(),
  leaseMs: z.int().positive(),
  clients: z.int().positive(),
  keepAliveMs: z.int().positive(),
  drainMs: z.int().positive(),
});
export type NodeOrders = z.infer<typeof ordersSchema>;

function tell(line: WorkerLine): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

const orders = ordersSchema.parse(JSON.parse(process.argv[2] ?? "{}"));
const { store, ledger, model, leaseMs, keepAliveMs } = orders;
const runtime = await createRuntime({
  agents: servedTeam(ledger, model),
  stores: storesAt(store),
  queues: queuesAt(store, leaseMs),
  leaseMs,
});
const sharing = await redisSharing({ url: orders.redis });
const server = serveRuntime(runtime, {
  authenticate: tokenAuth({ tokens: identitiesOf(orders.clients) }),
  surfaces: [apiSurface({ tickets: sharing.tickets })],
  limits: { redis: sharing },
  keepAliveMs,
  onLog: ({ status, route, error }) => {
    if (status === 500) process.stderr.write(`${route} was answered 500: ${error}\n`);
  },
});
process.once("SIGTERM", () => {
  const begun = performance.now();
  void runtime.metrics().then(async (metrics) => {
    await server.close();
    await runtime.drain({ timeoutMs: orders.drainMs });
    await sharing.close();
    tell({ type: "drained", milliseconds: Math.round(performance.now() - begun), metrics });
  });
});
endWithParent({ onTerminate: false });
const { url } = await server.listen();
tell({ type: "up", pid: process.pid, url });
