import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import type { Socket } from "node:net";
import { setImmediate } from "node:timers/promises";
import { expect, it } from "vitest";
import { WebSocket } from "ws";
import { createRuntime } from "../../src/index.ts";
import { Feed } from "../../src/inspector/feed/feed.ts";
import { importRun } from "../../src/inspector/feed/run-file.ts";
import type { FeedMessage } from "../../src/inspector/feed/wire.ts";
import { type FeedServer, serveFeed } from "../../src/inspector/start-inspector.ts";
import { amount } from "../support/full.ts";
import { busyTeam } from "./feed-fixtures.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

const ROUNDS = 5;

/** The memory in use: the lowest of several measurements, because buffers are released some time after their collection. */
async function bytesInUse(): Promise<number> {
  let least = Number.POSITIVE_INFINITY;
  for (let round = 0; round < ROUNDS; round += 1) {
    await setImmediate();
    collect();
    const { heapUsed, external } = process.memoryUsage();
    least = Math.min(least, heapUsed + external);
  }
  return least;
}

interface Client {
  readonly socket: WebSocket;
  readonly raw: Socket;
}

async function clientOf({ origin, tokens }: FeedServer): Promise<Client> {
  const socket = new WebSocket(`${origin.replace("http", "ws")}/feed`, ["troupe.feed.v1", `bearer.${tokens.watch}`]);
  const { promise, resolve, reject } = Promise.withResolvers<Client>();
  socket.once("error", reject);
  socket.once("upgrade", (response) => socket.once("open", () => resolve({ socket, raw: response.socket })));
  return await promise;
}

/** Reads all rows of a run over a socket. */
async function readAll({ socket }: Client, run: string): Promise<number> {
  const { promise, resolve } = Promise.withResolvers<number>();
  let entries = 0;
  socket.on("message", (data: Buffer) => {
    const message = JSON.parse(data.toString("utf8")) as FeedMessage;
    if (message.type !== "rows") return;
    for (const row of message.rows) entries += row.entries.length;
    if (message.isCaughtUp) resolve(entries);
    else socket.send(JSON.stringify({ type: "credit", batches: 1 }));
  });
  socket.send(JSON.stringify({ type: "watch", run, after: 0, credit: 4 }));
  return await promise;
}

it("an event takes at most 200 bytes on the wire", async () => {
  const runtime = await createRuntime({ agents: [busyTeam(150)] });
  const agent = await runtime.agent("lead", { agentId: "desk" });
  await agent.start();
  await agent.executeTurn("go").result;
  const feed = new Feed();
  feed.add({ stores: runtime.stores, tenant: runtime.tenant, runtime });
  const server = await serveFeed(feed);
  const client = await clientOf(server);
  const before = client.raw.bytesRead;
  const entries = await readAll(client, "desk");
  const bytes = (client.raw.bytesRead - before) / entries;
  expect(entries).toBeGreaterThan(600);
  expect(bytes).toBeLessThan(200);
  client.socket.terminate();
  await server.close();
  await runtime.shutdown();
});

it("eight clients that never read cost less than 2 MB each, and the others receive everything", async () => {
  const rows = amount(40_000, 15_000);
  const feed = new Feed();
  feed.add(await importRun(largeRun(rows)));
  const server = await serveFeed(feed);
  const warm = await clientOf(server);
  expect(await readAll(warm, "desk")).toBe(rows);
  warm.socket.terminate();
  const before = await bytesInUse();
  const deaf: Client[] = [];
  for (let count = 0; count < 8; count += 1) {
    const client = await clientOf(server);
    client.raw.pause();
    client.socket.send(JSON.stringify({ type: "watch", run: "desk", after: 0, credit: 1_000 }));
    deaf.push(client);
  }
  const reader = await clientOf(server);
  expect(await readAll(reader, "desk")).toBe(rows);
  expect((await bytesInUse()) - before).toBeLessThan(8 * 2_000_000);
  for (const { socket } of [...deaf, reader]) socket.terminate();
  await server.close();
}, 300_000);

/** A run of one agent with this many rows, whose texts do not compress. */
function largeRun(count: number): string {
  let state = 7;
  const noise = (): string => {
    let text = "";
    while (text.length < 600) {
      state = (state * 1_103_515_245 + 12_345) % 2_147_483_648;
      text += state.toString(36);
    }
    return text;
  };
  const rows = Array.from({ length: count }, (_, index) => ({
    version: 1,
    cursor: index + 1,
    agentId: "desk",
    entries: [{ type: "warning", seq: index + 1, at: index, epoch: 1, code: "note", message: noise() }],
    messages: [],
  }));
  const identity = {
    tenant: "default",
    agentId: "desk",
    rootAgentId: "desk",
    parentAgentId: null,
    parentTurnId: null,
    parentStep: null,
    parentCallId: null,
    depth: 0,
    definition: { name: "desk", hash: "h" },
    ownerId: null,
    sessionId: null,
    createdAt: 0,
    accountId: null,
    parentAccountId: null,
    grantedTools: null,
    maxDepth: 1,
    turnLimits: null,
    metadata: {},
  };
  const owned = { status: "ready", turnCount: 0, lastActivity: 0, error: null, checkpoint: null };
  const commands = { openTurnId: null, queuedTurnIds: [], nextTurnNumber: 1, pause: null, abort: null };
  const agent = {
    record: { ...identity, ...owned, ...commands },
    epoch: 1,
    seq: count,
    at: count,
    artifacts: [],
    requests: [],
  };
  const head = { format: "troupe.run/1", exportedAt: 0, namesOnly: false, tenant: "default", runId: "desk" };
  return JSON.stringify({ ...head, agents: [agent], accounts: [], waiters: [], rows, turns: [], definitions: [] });
}
