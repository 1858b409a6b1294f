import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { InvariantError, StoreUnavailableError, UnsupportedError } from "../../errors/index.ts";
import type { RedisClient } from "../../redis/index.ts";
import { parsed } from "../rules/stored-values.ts";
import { type Migration, migrations } from "./migrations/index.ts";
import { script } from "./redis-scripts.ts";

/** If a migrating process is silent for this long, another one takes over. In milliseconds. */
const LOCK_MS = 30_000;
const BETWEEN_LOOKS_MS = 100;

const layoutSchema = z.object({ number: z.int().positive(), troupe: z.string() });
type Layout = z.infer<typeof layoutSchema>;

/** KEYS the lock. ARGV its holder, milliseconds. Returns 1 if the holder still has the lock. */
const renewScript = script(
  "renew-lock",
  `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0`,
);
/** KEYS the layout, the lock. ARGV the new layout, the holder of the lock. Returns 1 if the holder still has the lock. */
const advanceScript = script(
  "advance-layout",
  `if redis.call('GET', KEYS[2]) ~= ARGV[2] then return 0 end redis.call('SET', KEYS[1], ARGV[1]) return 1`,
);
/** KEYS the lock. ARGV its holder. */
const releaseScript = script(
  "release-lock",
  `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`,
);

interface LayoutOptions {
  readonly prefix: string;
  /** How long to wait for another process's migration, in milliseconds. */
  readonly timeoutMs: number;
  readonly steps?: readonly Migration[] | undefined;
}

/**
 * Migrates the keys under a prefix to the current layout. One of several processes does it, and the others wait. The layout is stored
 * after each step, so that another process can continue if this one dies.
 *
 * Throws `UnsupportedError` for a layout that this version does not support, and `StoreUnavailableError` while another process migrates.
 */
export async function migrate(
  client: RedisClient,
  { prefix, timeoutMs, steps = migrations }: LayoutOptions,
): Promise<void> {
  const own = steps.at(-1);
  if (!own) throw new InvariantError("there are no Redis migrations");
  const keys = keysOf(prefix);
  const holder = randomUUID();
  for (const end = performance.now() + timeoutMs; performance.now() < end; await delay(BETWEEN_LOOKS_MS)) {
    if ((await layoutOf(client, prefix, own)) === own.number) return;
    if ((await client.set(keys.lock, holder, "PX", LOCK_MS, "NX")) !== "OK") continue;
    const renewal = setInterval(() => {
      client.eval(renewScript.text, 1, keys.lock, holder, LOCK_MS).catch(() => undefined);
    }, LOCK_MS / 3);
    try {
      // Another process may have migrated before the lock was free.
      const from = await layoutOf(client, prefix, own);
      for (const step of steps.filter(({ number }) => number > from)) {
        await step.apply(client, prefix);
        const isOwn = await client.eval(advanceScript.text, 2, keys.layout, keys.lock, layoutText(step), holder);
        if (isOwn !== 1) throw underWay(prefix);
      }
      return;
    } finally {
      clearInterval(renewal);
      await client.eval(releaseScript.text, 1, keys.lock, holder);
    }
  }
  throw underWay(prefix);
}

/** The layout number; 0 for a prefix without keys. Only reads, so that nothing is changed if it throws. */
async function layoutOf(client: RedisClient, prefix: string, own: Migration): Promise<number> {
  const keys = keysOf(prefix);
  const text = await client.get(keys.layout);
  if (text !== null) {
    const layout: Layout = parsed(layoutSchema, text, `the layout (${keys.layout})`);
    if (layout.number <= own.number) return layout.number;
    const { number, troupe } = layout;
    throw new UnsupportedError(
      `the keys under ${JSON.stringify(prefix)} have layout ${number}, and this version of troupe reads layouts up to ${own.number}; use troupe ${troupe} or later`,
      { details: { prefix, layout: number, troupe } },
    );
  }
  // In all numbered layouts the version of a tree has another name.
  if ((await client.hexists(keys.processes, "v")) === 0) return 0;
  throw new UnsupportedError(
    `the keys under ${JSON.stringify(prefix)} were written by troupe before its layouts were numbered, which is no longer supported; use another prefix`,
    { details: { prefix } },
  );
}

function underWay(prefix: string): StoreUnavailableError {
  return new StoreUnavailableError(
    `another process is migrating the keys under ${JSON.stringify(prefix)}; try again when it is done`,
    { details: { code: "MIGRATING" } },
  );
}

/** Writes the layout again if Redis has lost all data while this process used it. */
export async function keepLayout(client: RedisClient, prefix: string): Promise<void> {
  const own = migrations.at(-1);
  if (own) await client.set(keysOf(prefix).layout, layoutText(own), "NX");
}

function layoutText({ number, troupe }: Migration): string {
  return JSON.stringify({ number, troupe } satisfies Layout);
}

/** All in one slot of a cluster. Every process registers itself, so `processes` exists if stores were ever used. */
function keysOf(prefix: string): { readonly layout: string; readonly lock: string; readonly processes: string } {
  const base = `${prefix}{processes}:`;
  return { layout: `${base}layout`, lock: `${base}layout-lock`, processes: `${base}meta` };
}
