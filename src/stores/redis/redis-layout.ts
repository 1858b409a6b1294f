import { randomUUID } from "node:crypto";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { InvariantError, StoreUnavailableError, UnsupportedError } from "../../errors/index.ts";
import type { RedisClient } from "../../redis/index.ts";
import { parsed } from "../rules/stored-values.ts";
import { type Migration, migrations } from "./migrations/index.ts";
import { script } from "./redis-scripts.ts";

/** How long a process that migrates may be silent before another one takes over, in milliseconds. */
const LOCK_MS = 30_000;
const BETWEEN_LOOKS_MS = 100;

const layoutSchema = z.object({ number: z.int().positive(), troupe: z.string() });
type Layout = z.infer<typeof layoutSchema>;

/** KEYS the lock. ARGV its holder, milliseconds. Gives 1 if the holder has it still. */
const renewScript = script(
  "renew-lock",
  `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('PEXPIRE', KEYS[1], ARGV[2]) end return 0`,
);
/** KEYS the layout, the lock. ARGV the new layout, the holder of the lock. Gives 1 if the holder has it still. */
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
  /** How long to wait for another process that migrates, in milliseconds. */
  readonly timeoutMs: number;
  readonly steps?: readonly Migration[] | undefined;
}

/**
 * Brings what lies under a prefix to the present layout. Of several processes one takes the steps, and the others wait for it. The
 * layout is written after each step, so that a successor goes on where a process has died.
 *
 * Throws `UnsupportedError` for a layout that this version does not know, and `StoreUnavailableError` while another process migrates.
 */
export async function migrate(
  client: RedisClient,
  { prefix, timeoutMs, steps = migrations }: LayoutOptions,
): Promise<void> {
  const own = steps.at(-1);
  if (!own) throw new InvariantError("no layout of Redis is known");
  const keys = keysOf(prefix);
  const holder = randomUUID();
  for (const end = performance.now() + timeoutMs; performance.now() < end; await delay(BETWEEN_LOOKS_MS)) {
    if ((await layoutOf(client, prefix, own)) === own.number) return;
    if ((await client.set(keys.lock, holder, "PX", LOCK_MS, "NX")) !== "OK") continue;
    const renewal = setInterval(() => {
      client.eval(renewScript.text, 1, keys.lock, holder, LOCK_MS).catch(() => undefined);
    }, LOCK_MS / 3);
    try {
      // Another process may have taken the steps before the lock was free.
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

/** 0 for a prefix under which nothing lies. Reads only, so that nothing is changed where it throws. */
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
  // The version of a tree has another name in all numbered layouts.
  if ((await client.hexists(keys.processes, "v")) === 0) return 0;
  throw new UnsupportedError(
    `the keys under ${JSON.stringify(prefix)} were written by troupe before its layouts were numbered, which no version reads any more; use another prefix`,
    { details: { prefix } },
  );
}

function underWay(prefix: string): StoreUnavailableError {
  return new StoreUnavailableError(
    `another process brings the keys under ${JSON.stringify(prefix)} to a new layout; try again when it is done`,
    { details: { code: "MIGRATING" } },
  );
}

/** Writes the layout again where Redis has lost everything while this process was using it. */
export async function keepLayout(client: RedisClient, prefix: string): Promise<void> {
  const own = migrations.at(-1);
  if (own) await client.set(keysOf(prefix).layout, layoutText(own), "NX");
}

function layoutText({ number, troupe }: Migration): string {
  return JSON.stringify({ number, troupe } satisfies Layout);
}

/** In one slot of a cluster. Every process registers itself, so `processes` exists wherever stores were used. */
function keysOf(prefix: string): { readonly layout: string; readonly lock: string; readonly processes: string } {
  const base = `${prefix}{processes}:`;
  return { layout: `${base}layout`, lock: `${base}layout-lock`, processes: `${base}meta` };
}
