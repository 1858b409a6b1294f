/**
 * A server on loopback in a separate process, so that nothing else is in its memory. Forked with `--expose-gc`; arguments:
 * `bare`, `memory`, `sqlite` or `redis`, and the milliseconds after which a client that does not read is disconnected.
 * `bare` is Hono on our adapter, with a token, one list, and streams that only send keep-alive comments. It sends its
 * address, then answers questions.
 */
import type { AddressInfo } from "node:net";
import { createAdaptorServer } from "@hono/node-server";
import { Hono } from "hono";
import { createRuntime, defineAgent, type LanguageModel, type Runtime, windowHistory } from "../../src/index.ts";
import { serveRuntime, tokenAuth } from "../../src/server/index.ts";
import { openStores, type StoreKind } from "../ours/open-stores.ts";
import { instructions, userInput } from "../scenario.ts";
import { bearer, listPath, token, type ServerKind } from "./wire.ts";

export type Question =
  /** Creates and starts agents, one per streaming client. Answered with the paths of their events. */
  | { readonly ask: "open"; readonly agents: number }
  /** Answered with a `Weight`. */
  | { readonly ask: "weigh" }
  /** Runs turns with long answers of this path's agent, until all its followers are gone. Answered with a `Peak`. */
  | { readonly ask: "write"; readonly path: string; readonly turns: number };

export interface Weight {
  /** Measured after garbage collection. */
  readonly heapBytes: number;
  readonly rssBytes: number;
  /** Processor time of all threads since the start. */
  readonly processorMs: number;
}

export interface Peak {
  /** Largest increase during the work. */
  readonly rssBytes: number;
  readonly processorMs: number;
}

const KEEP_ALIVE_MS = 15_000;
const LOOK_MS = 20;
const MANY = 1_000_000_000;
/** Pieces per answer. */
const PIECES = 2_000;
const PIECE = "x".repeat(1_000);

/** Writes its answer in pieces, as fast as a reader on this machine could take them. */
const writer: LanguageModel = {
  name: "writer",
  provider: "bench",
  countPromptTokens: () => 40,
  generate: async (_, { onDelta }) => {
    for (let piece = 0; piece < PIECES; piece += 1) {
      onDelta?.({ type: "text", text: PIECE });
      if (piece % 10 === 0) await new Promise((resolve) => setImmediate(resolve));
    }
    const usage = { inputTokens: 40, outputTokens: 20 };
    return { content: PIECE.repeat(PIECES), toolCalls: [], usage, finishReason: "stop", model: "writer" };
  },
};

interface Serving {
  readonly url: string;
  open(agents: number): Promise<string[]>;
  write(path: string, turns: number): Promise<void>;
}

/** The list, and streams that only send occasional comments. */
async function serveBare(): Promise<Serving> {
  const app = new Hono();
  const answer = { items: [{ name: "agent", description: null, instructions }], next: null };
  app.use("*", async (context, next) => {
    if (context.req.header("authorization") !== bearer) return context.json({ error: "unauthenticated" }, 401);
    return await next();
  });
  app.get(listPath, (context) => context.json(answer));
  app.get("/events/:number", () => {
    let timer: NodeJS.Timeout | undefined;
    const encoder = new TextEncoder();
    const body = new ReadableStream<Uint8Array>({
      start(controller) {
        controller.enqueue(encoder.encode(": hello\n\n"));
        timer = setInterval(() => controller.enqueue(encoder.encode(": keep-alive\n\n")), KEEP_ALIVE_MS);
      },
      cancel: () => clearInterval(timer),
    });
    return new Response(body, { headers: { "content-type": "text/event-stream" } });
  });
  const server = createAdaptorServer({ fetch: app.fetch });
  await new Promise<void>((resolve) => void server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://127.0.0.1:${port}`,
    open: async (agents) => Array.from({ length: agents }, (_, number) => `/events/${number}`),
    write: async () => undefined,
  };
}

async function serveOurs(kind: StoreKind): Promise<Serving> {
  const { stores, remove } = await openStores(kind);
  const agent = defineAgent({ name: "agent", instructions, model: writer, history: windowHistory(1, { upTo: 1 }) });
  const runtime = await createRuntime({ agents: [agent], stores });
  const server = serveRuntime(runtime, {
    authenticate: tokenAuth({ tokens: { [token]: { userId: "bench", scopes: [] } } }),
    limits: { requestsPerMinute: MANY, turnsPerMinute: MANY, streamsPerCaller: MANY },
    keepAliveMs: KEEP_ALIVE_MS,
    stallMs,
  });
  process.once("SIGTERM", () => {
    void runtime
      .shutdown()
      .then(remove)
      .then(() => process.exit(0));
  });
  const { url } = await server.listen();
  return {
    url,
    open: async (agents) => {
      const paths: string[] = [];
      for (let number = 0; number < agents; number += 1) paths.push(await openAgent(runtime));
      return paths;
    },
    write: async (path, turns) => {
      const open = await runtime.find(path.split("/")[3] ?? "");
      for (let turn = 0; turn < turns; turn += 1) await open.executeTurn(userInput).result;
      await untilNobodyReads(`${url}/metrics`);
    },
  };
}

async function openAgent(runtime: Runtime): Promise<string> {
  const agent = await runtime.agent("agent", { ownerId: "bench" });
  await agent.start();
  return `/api/trees/${agent.agentId}/events`;
}

/** Waits until reading clients have left and other clients were disconnected. */
async function untilNobodyReads(metrics: string): Promise<void> {
  const until = performance.now() + stallMs * 2;
  for (;;) {
    const text = await (await fetch(metrics)).text();
    if (/^troupe_http_streams 0$/m.test(text)) return;
    if (performance.now() > until) throw new Error("A client that does not read is still connected.");
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

/** Settles pending timers and promises first. */
async function weigh(): Promise<Weight> {
  for (let time = 0; time < 3; time += 1) {
    await new Promise((resolve) => setImmediate(resolve));
    globalThis.gc?.();
  }
  const { heapUsed, external, rss } = process.memoryUsage();
  const { user, system } = process.cpuUsage();
  return { heapBytes: heapUsed + external, rssBytes: rss, processorMs: (user + system) / 1_000 };
}

/** The largest increase of the process's memory while `work` runs. */
async function peakOf(work: () => Promise<void>): Promise<Peak> {
  const before = await weigh();
  let peak = before.rssBytes;
  const look = setInterval(() => (peak = Math.max(peak, process.memoryUsage.rss())), LOOK_MS);
  await work();
  clearInterval(look);
  const after = await weigh();
  return { rssBytes: peak - before.rssBytes, processorMs: after.processorMs - before.processorMs };
}

async function answerTo(question: Question): Promise<string[] | Weight | Peak> {
  if (question.ask === "open") return await serving.open(question.agents);
  if (question.ask === "weigh") return await weigh();
  return await peakOf(() => serving.write(question.path, question.turns));
}

const kind = process.argv[2] as ServerKind;
const stallMs = Number(process.argv[3]);
const serving = kind === "bare" ? await serveBare() : await serveOurs(kind);
process.on("message", (question: Question) => {
  answerTo(question).then(
    (answer) => process.send?.({ answer }),
    (error: unknown) => process.send?.({ error: String(error) }),
  );
});
process.once("disconnect", () => process.exit(0));
process.send?.({ answer: serving.url });
