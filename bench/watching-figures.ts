/**
 * `node --expose-gc bench/watching-figures.ts [CHILDREN]`: prints the cost of being watched as JSON: bytes per event on the
 * wire, memory of clients that never read, the longest block of the event loop, and the delay between a commit and a page.
 */
import { fork } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { monitorEventLoopDelay } from "node:perf_hooks";
import { createInterface } from "node:readline";
import { setTimeout as delay } from "node:timers/promises";
import { fileURLToPath } from "node:url";
import { WebSocket } from "ws";
import { createRuntime, defineAgent, type LanguageModel, memoryStores, type Stores } from "../src/index.ts";
import { Feed, serveFeed } from "../src/inspector/index.ts";
import { sqliteStores } from "../src/stores/sqlite.ts";
import { lookupTool } from "./ours/agents.ts";
import { instantModel } from "./ours/instant-model.ts";
import { largeTurn } from "./ours/large-team.ts";
import { lacksRedis, openRedis, type StoreKind } from "./ours/open-stores.ts";
import { startPageReading } from "./ours/page-reading.ts";
import { timed } from "./study.ts";
import { temporaryFolder } from "./temporary-folder.ts";

const children = Number(process.argv[2] ?? 2_000);
const DEAF = 8;

type Runtime = Awaited<ReturnType<typeof createRuntime>>;

interface Turn {
  readonly processorMs: number;
  /** The longest block of the event loop. */
  readonly longestBlockMs: number;
}

async function turn(watch?: (runtime: Runtime) => () => void): Promise<Turn> {
  const blocks = monitorEventLoopDelay({ resolution: 1 });
  blocks.enable();
  const { processorMs } = await timed(() => largeTurn({}, { children, ...(watch ? { watch } : {}) }));
  blocks.disable();
  return { processorMs: Math.round(processorMs), longestBlockMs: Math.round(blocks.max / 1e6) };
}

async function bytesInUse(): Promise<number> {
  for (let time = 0; time < 3; time += 1) {
    await delay(20);
    globalThis.gc?.();
  }
  const { heapUsed, external } = process.memoryUsage();
  return heapUsed + external;
}

/** Megabytes of this process per client that requested everything and reads nothing, including the clients' sockets. */
async function deafClients(origin: string, token: string): Promise<number> {
  const before = await bytesInUse();
  const sockets: WebSocket[] = [];
  for (let count = 0; count < DEAF; count += 1) {
    const socket = new WebSocket(`${origin.replace("http", "ws")}/feed`, ["troupe.feed.v1", `bearer.${token}`]);
    socket.once("upgrade", (response) => response.socket.pause());
    await new Promise((resolve) => void socket.once("open", resolve));
    socket.send(JSON.stringify({ type: "watch", run: "desk", after: 0, credit: 1_000 }));
    sockets.push(socket);
  }
  await delay(3_000);
  const taken = (await bytesInUse()) - before;
  for (const socket of sockets) socket.terminate();
  return taken / DEAF / 1e6;
}

async function large() {
  // The first turn compiles the code.
  await turn();
  const alone = await turn();
  const feed = new Feed();
  const server = await serveFeed(feed);
  const { origin, tokens } = server;
  const reading = await startPageReading(origin, tokens.watch, "desk");
  const runtimes: Runtime[] = [];
  const watched = await turn((runtime) => {
    runtimes.push(runtime);
    feed.add({ stores: runtime.stores, tenant: runtime.tenant, runtime });
    return () => {};
  });
  const stored = (await runtimes[0]?.stores.readTree("default", "desk", 0, 1_000_000))?.at(-1)?.cursor ?? 0;
  await delay(5_000);
  const { entries, bytes, head, doubles } = await reading.end();
  const megabytesEach = await deafClients(origin, tokens.watch);
  await server.close();
  return {
    children,
    alone,
    watched,
    entries,
    isWhole: head === stored,
    doubles,
    bytesAnEvent: bytes / entries,
    megabytesEach,
  };
}

interface WatchedStore {
  readonly stores: Stores;
  /** Arguments for `troupe inspect` to open the stores; `undefined` if only this process can open them. */
  readonly words: readonly string[] | undefined;
  readonly remove: () => unknown;
}

async function openStore(kind: StoreKind): Promise<WatchedStore> {
  if (kind === "memory") return { stores: memoryStores(), words: undefined, remove: () => undefined };
  if (kind === "redis") {
    const { stores, server, remove } = await openRedis();
    return { stores, words: ["--redis", server.url], remove };
  }
  const { folder, remove } = temporaryFolder();
  const file = join(folder, "bench.db");
  return { stores: sqliteStores(file), words: ["--store", file], remove };
}

interface Shown {
  readonly origin: string;
  readonly token: string;
  close(): unknown;
}

/** The page of a runtime in this process, or of its stores in another process. */
async function shownAt(words: WatchedStore["words"], runtime: Runtime): Promise<Shown> {
  if (words === undefined) {
    const feed = new Feed();
    feed.add({ stores: runtime.stores, tenant: runtime.tenant, runtime });
    const server = await serveFeed(feed);
    return { origin: server.origin, token: server.tokens.watch, close: () => server.close() };
  }
  const main = fileURLToPath(new URL("../src/cli/main.ts", import.meta.url));
  const child = fork(main, ["inspect", "desk", "--read-only", ...words], {
    stdio: ["ignore", "pipe", "inherit", "ipc"],
  });
  if (child.stdout === null) throw new Error("The inspector has no standard output.");
  const [line] = (await once(createInterface({ input: child.stdout }), "line")) as [string];
  const { origin, hash } = new URL(line.slice(line.lastIndexOf("http://")));
  return { origin, token: hash.slice("#token=".length), close: () => child.kill("SIGTERM") };
}

/** Delay of commits to a page, while one agent takes a step every few milliseconds. */
async function lateness(kind: StoreKind) {
  const { stores, words, remove } = await openStore(kind);
  const model = instantModel(300);
  const calm: LanguageModel = { ...model, generate: (...given) => delay(15).then(() => model.generate(...given)) };
  const lead = defineAgent({ name: "lead", model: calm, tools: [lookupTool], budget: { maxSteps: 1_000 } });
  const runtime = await createRuntime({ agents: [lead], stores });
  const agent = await runtime.agent("lead", { agentId: "desk" });
  await agent.start();
  const shown = await shownAt(words, runtime);
  const reading = await startPageReading(shown.origin, shown.token, "desk");
  await reading.begun;
  await agent.executeTurn("go").result;
  await delay(1_000);
  const { p50, p95, entries } = await reading.end();
  await shown.close();
  await runtime.shutdown();
  await stores.close().catch(() => undefined);
  await remove();
  return { kind, isOtherProcess: words !== undefined, p50, p95, entries };
}

const kinds: StoreKind[] = ["memory", "sqlite", ...((await lacksRedis()) === undefined ? (["redis"] as const) : [])];
const late = [];
for (const kind of kinds) late.push(await lateness(kind));
console.log(JSON.stringify({ late, ...(await large()) }, null, 2));
process.exit(0);
