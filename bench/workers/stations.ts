import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { type Agent, createRuntime, type Runtime } from "../../src/index.ts";
import { bullmqQueues } from "../../src/queues/bullmq.ts";
import { redisStores } from "../../src/stores/redis.ts";
import { RedisServer } from "../../test/support/redis-server.ts";
import { answerText } from "../model-answers.ts";
import { userInput } from "../scenario.ts";
import { type Sample, type Side, timed } from "../study.ts";
import { type WorkedAgent, workedAgents } from "./agents.ts";

const WORKERS = 2;

export interface Load {
  /** Turns or jobs per sample. */
  readonly count: number;
  readonly atOnce: number;
  /** `rate`: turns per second. `time`: milliseconds per turn. */
  readonly as: "rate" | "time";
}

/** Turns that a client submits and two worker processes run. */
export function workedSide(agent: WorkedAgent, load: Load): Side {
  return {
    name: `workers, ${agent}`,
    prepare: async () => {
      const server = await RedisServer.start();
      const { url } = server;
      const workers = await startWorkers(url, "ours");
      const part = { role: "client", queues: bullmqQueues({ url }) } as const;
      const client = await createRuntime({ agents: workedAgents(), stores: redisStores({ url }), ...part });
      const agents = await openAgents(client, agent, load);
      return {
        sample: () => sampleOf(load, (lane) => runTurn(agents[lane])),
        close: async () => {
          await client.shutdown();
          await stopWorkers(workers);
          await server.stop();
        },
      };
    },
  };
}

/** The same turns in one process, on the same stores. */
export function localSide(agent: WorkedAgent, load: Load): Side {
  return {
    name: `one process, ${agent}`,
    prepare: async () => {
      const server = await RedisServer.start();
      const runtime = await createRuntime({ agents: workedAgents(), stores: redisStores({ url: server.url }) });
      const agents = await openAgents(runtime, agent, load);
      return {
        sample: () => sampleOf(load, (lane) => runTurn(agents[lane])),
        close: async () => {
          await runtime.shutdown();
          await server.stop();
        },
      };
    },
  };
}

/** BullMQ jobs that do nothing. This process adds them and awaits them; two worker processes run them. */
export function bareJobsSide(load: Load): Side {
  return {
    name: "bare jobs",
    prepare: async () => {
      const { Queue, QueueEvents } = await import("bullmq");
      const server = await RedisServer.start();
      const { url } = server;
      const workers = await startWorkers(url, "bare");
      const queue = new Queue("bare", { connection: { url }, defaultJobOptions: { removeOnComplete: true } });
      const events = new QueueEvents("bare", { connection: { url, maxRetriesPerRequest: null } });
      await events.waitUntilReady();
      events.setMaxListeners(0);
      const ended = new Map<string, () => void>();
      events.on("completed", ({ jobId }) => ended.get(jobId)?.());
      let number = 0;
      const runJob = async (): Promise<void> => {
        number += 1;
        const jobId = `job-${number}`;
        const { promise, resolve } = Promise.withResolvers<void>();
        ended.set(jobId, resolve);
        await queue.add("job", { id: jobId }, { jobId });
        await promise;
        ended.delete(jobId);
      };
      return {
        sample: () => sampleOf(load, runJob),
        close: async () => {
          await events.close();
          await queue.close();
          await stopWorkers(workers);
          await server.stop();
        },
      };
    },
  };
}

/** One conversation per concurrent turn, opened before the measurement. */
async function openAgents(runtime: Runtime, name: WorkedAgent, { atOnce }: Load): Promise<Agent[]> {
  const opening = Array.from({ length: atOnce }, async () => {
    const agent = await runtime.agent(name);
    await agent.start();
    return agent;
  });
  return await Promise.all(opening);
}

async function runTurn(agent: Agent | undefined): Promise<void> {
  const result = await agent?.executeTurn(userInput).result;
  if (result?.text !== answerText) throw new Error(`workers: expected ${answerText}, got ${result?.text}.`);
}

async function sampleOf({ count, atOnce, as }: Load, one: (lane: number) => Promise<void>): Promise<Sample> {
  let left = count;
  const lane = async (_: unknown, index: number): Promise<void> => {
    while (left > 0) {
      left -= 1;
      await one(index);
    }
  };
  const lanes = (): Promise<unknown> => Promise.all(Array.from({ length: Math.min(atOnce, count) }, lane));
  const { elapsedMs, processorMs } = await timed(lanes);
  const value = as === "rate" ? (count * 1_000) / elapsedMs : elapsedMs / count;
  return { value, processorMs: processorMs / count };
}

async function startWorkers(url: string, kind: "ours" | "bare"): Promise<ChildProcess[]> {
  const program = fileURLToPath(new URL("worker.ts", import.meta.url));
  const starting = Array.from({ length: WORKERS }, async () => {
    const child = fork(program, [url, kind], { stdio: ["ignore", "pipe", "inherit", "ipc"] });
    if (child.stdout) await once(child.stdout, "data");
    return child;
  });
  return await Promise.all(starting);
}

async function stopWorkers(workers: readonly ChildProcess[]): Promise<void> {
  const ends = workers.map((child) => once(child, "exit"));
  for (const child of workers) child.kill("SIGTERM");
  await Promise.all(ends);
}
