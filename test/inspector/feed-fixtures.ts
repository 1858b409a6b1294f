import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll } from "vitest";
import { z } from "zod";
import { type AgentDefinition, defineAgent, defineTool, memoryStores, type Stores, subagent } from "../../src/index.ts";
import type { Feed } from "../../src/inspector/feed/feed.ts";
import type { RunWatch } from "../../src/inspector/feed/run-watch.ts";
import type { FeedMessage, FeedRow } from "../../src/inspector/feed/wire.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { RedisServer, redisProgram } from "../support/redis-server.ts";
import { ownPrefix, storesOn } from "../support/redis-stores.ts";
import { Heard } from "./heard.ts";

/** A storage that several processes may open. */
export interface SharedStores {
  open(): Stores;
}

export type StoresName = "memory" | "sqlite" | "redis";
export const storesNames: readonly StoresName[] = redisProgram ? ["memory", "sqlite", "redis"] : ["memory", "sqlite"];

/** Creates a new storage for each test of a suite. */
export function sharedStoresOf(name: StoresName): () => SharedStores {
  let server: RedisServer | undefined;
  const folder = mkdtempSync(join(tmpdir(), "troupe-feed-"));
  beforeAll(async () => {
    if (name === "redis") server = await RedisServer.start();
  });
  afterAll(async () => {
    await server?.stop();
    rmSync(folder, { recursive: true, force: true });
  });
  let count = 0;
  return () => {
    count += 1;
    if (name === "memory") {
      const stores = memoryStores();
      return { open: () => stores };
    }
    const file = join(folder, `${count}.db`);
    const prefix = ownPrefix();
    return { open: () => (server ? storesOn(server, { prefix }) : sqliteStores(file)) };
  };
}

/** A lead that calls a tool in each of the given number of steps, then asks a subagent and answers. */
export function busyTeam(steps: number): AgentDefinition {
  const look = defineTool({
    name: "look",
    description: "Looks.",
    parameters: z.object({ at: z.string() }),
    effect: "none",
    execute: ({ at }) => `seen ${at}`,
  });
  const reader = defineAgent({ name: "reader", model: scriptedModel("read") });
  return defineAgent({
    name: "lead",
    tools: [look, subagent(reader)],
    budget: { maxSteps: steps + 5 },
    model: scriptedModel(({ messages }) => {
      const seen = messages.filter(({ role }) => role === "tool").length;
      if (seen < steps) return { toolCalls: [{ name: "look", arguments: { at: `place ${seen}` } }] };
      if (seen === steps) return { toolCalls: [{ name: "reader", arguments: { input: "this" } }] };
      return "done";
    }),
  });
}

export interface Reader {
  readonly messages: FeedMessage[];
  readonly rows: FeedRow[];
  readonly watch: RunWatch;
  batches(): number;
  /** Resolves when a past or future message matches. */
  until(passes: (message: FeedMessage) => boolean): Promise<FeedMessage>;
}

/** A reader in this process. */
export async function readerOf(
  feed: Feed,
  run: string,
  place: { readonly after: number; readonly credit: number },
): Promise<Reader> {
  const heard = new Heard<FeedMessage>();
  const rows: FeedRow[] = [];
  const watch = await feed.watch(run, place, {
    isFull: () => false,
    send(message) {
      if (message.type === "rows") rows.push(...message.rows);
      heard.add(message);
    },
  });
  return {
    messages: heard.all,
    rows,
    watch,
    batches: () => heard.all.filter(({ type }) => type === "rows").length,
    until: (passes) => heard.until(passes),
  };
}

/** The same stores, with a callback before each call. `stores` may return others later. */
export function overheard(stores: () => Stores, tell: (name: string, asked: readonly unknown[]) => void): Stores {
  return new Proxy(stores(), {
    get(_target, name) {
      const target = stores();
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      return (...asked: unknown[]): unknown => {
        tell(String(name), asked);
        return Reflect.apply(value, target, asked);
      };
    },
  });
}

export function isCaughtUp(message: FeedMessage): boolean {
  return message.type === "rows" && message.isCaughtUp;
}
