/**
 * A node: `node chaos/serving/node.ts ORDERS` (JSON). It serves one protocol over HTTP and runs turns of any tree, like the
 * other nodes. SIGTERM makes it exit gracefully; the scenario kills it with SIGKILL.
 */
import { z } from "zod";
import { createRuntime } from "../../src/index.ts";
import {
  a2aSurface,
  agUiSurface,
  aiSdkSurface,
  apiSurface,
  openaiSurface,
  redisSharing,
  serveRuntime,
  type Surface,
  tealSurface,
  tokenAuth,
} from "../../src/server/index.ts";
import { endWithParent } from "../end-with-parent.ts";
import { storesAt } from "../stores-at.ts";
import { queuesAt } from "../workers/queues-at.ts";
import type { WorkerLine } from "../workers/worker.ts";
import { identitiesOf, servedTeam, TEAL_VERSION } from "./team.ts";

const surfaceNames = ["api", "teal", "a2a", "ag-ui", "ai-sdk", "openai"] as const;
export type SurfaceName = (typeof surfaceNames)[number];

const ordersSchema = z.object({
  surface: z.enum(surfaceNames),
  store: z.string(),
  /** URL of the stores' Redis. */
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
const { desk, teller } = servedTeam(ledger, model);
const runtime = await createRuntime({
  agents: [desk, teller],
  stores: storesAt(store),
  queues: queuesAt(store, leaseMs),
  leaseMs,
  // A client that joins during an answer, such as one that was cut off, gets its text too.
  streaming: orders.surface === "api" ? "watched" : "always",
});
const sharing = await redisSharing({ url: orders.redis });
const api = apiSurface({ tickets: sharing.tickets });
const surfaces: Readonly<Record<SurfaceName, () => Promise<Surface[]>>> = {
  api: async () => [api],
  teal: async () => [tealSurface({ agents: [{ version: TEAL_VERSION, definition: teller }] })],
  a2a: async () => [await a2aSurface({ agents: [{ definition: teller }] })],
  "ag-ui": async () => [agUiSurface()],
  "ai-sdk": async () => [aiSdkSurface()],
  // Its protocol has no request for an approval.
  openai: async () => [openaiSurface(), api],
};
const server = serveRuntime(runtime, {
  authenticate: tokenAuth({ tokens: identitiesOf(orders.clients) }),
  surfaces: await surfaces[orders.surface](),
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
