/**
 * A worker process: `node bench/workers/worker.ts URL ours | bare`. Prints a line when it is ready, and exits on SIGTERM.
 */
import { createRuntime } from "../../src/index.ts";
import { bullmqQueues } from "../../src/queues/bullmq.ts";
import { redisStores } from "../../src/stores/redis.ts";
import { workedAgents } from "./agents.ts";

const [url = "", kind] = process.argv.slice(2);
/** Concurrent jobs, on both sides. */
const CONCURRENCY = 50;

async function startOurs(): Promise<() => Promise<unknown>> {
  const runtime = await createRuntime({
    agents: workedAgents(),
    stores: redisStores({ url }),
    queues: bullmqQueues({ url }),
    role: "worker",
    work: { agents: CONCURRENCY },
  });
  return () => runtime.shutdown();
}

async function startBare(): Promise<() => Promise<unknown>> {
  const { Worker } = await import("bullmq");
  const connection = { url, maxRetriesPerRequest: null };
  const worker = new Worker("bare", async () => undefined, { connection, concurrency: CONCURRENCY });
  await worker.waitUntilReady();
  return () => worker.close();
}

const close = await (kind === "bare" ? startBare() : startOurs());
process.once("SIGTERM", () => void close().then(() => process.exit(0)));
process.once("disconnect", () => process.exit(0));
process.stdout.write("ready\n");
