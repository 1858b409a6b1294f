import { spawn } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import type { Account } from "../../src/budget/index.ts";
import type { Stores } from "../../src/stores/index.ts";
import { redisStores } from "../../src/stores/redis.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { temporaryFile } from "../stores/temporary-file.ts";
import { rows } from "../support/full.ts";
import { ownPrefix } from "../support/redis-stores.ts";
import { RedisServer, redisProgram } from "../support/redis-server.ts";

const LIMIT = 2_000;
const TENANT = "default";
const program = fileURLToPath(new URL("accounts-spender.ts", import.meta.url));
/** Where the processes kill themselves; another one lives. */
const faults = ["outer.charged:3", "outer.committed:4", "commit.after:5", "model.result:3"] as const;

/** Resolves when the process has ended; one with a fault dies there. */
async function run(where: string, fault: string, agentIds: readonly string[]): Promise<void> {
  const child = spawn(process.execPath, [program, where, String(LIMIT), ...agentIds], {
    env: { ...process.env, TROUPE_FAULT: fault },
    stdio: ["ignore", "ignore", "inherit"],
  });
  const [code, signal] = await once(child, "exit");
  if (fault === "") expect([code, signal]).toEqual([0, null]);
}

async function accountOf(stores: Stores): Promise<Account | undefined> {
  return (await stores.outer.of(TENANT, "ada")).find(({ id }) => id === "owner:perDay:ada");
}

function overLimit({ limits, used, reserved }: Account): string[] {
  const { maxTokens = Number.POSITIVE_INFINITY } = limits;
  return used.tokens + reserved.tokens > maxTokens ? [`${used.tokens} + ${reserved.tokens} of ${maxTokens}`] : [];
}

async function spendAndDie(where: string, stores: Stores, usual: readonly (typeof faults)[number][]) {
  const over: string[] = [];
  let isOver = false;
  const watching = (async () => {
    while (!isOver) {
      const account = await accountOf(stores);
      if (account) over.push(...overLimit(account));
      await new Promise((resolve) => setImmediate(resolve));
    }
  })();
  const killed = rows(faults, usual);
  const ids = [...killed, ""].map((_, at) => [`a${at}`, `b${at}`]);
  for (let at = 0; at < killed.length; at += 2) {
    await Promise.all([at, at + 1].map((one) => run(where, killed[one] ?? "commit.before:5", ids[one] ?? ["c"])));
  }
  await run(where, "", ids.flat());
  isOver = true;
  await watching;
  const later = { now: Date.now() + 3_600_000, steady: Number.MAX_SAFE_INTEGER };
  await stores.outer.tidy(TENANT, later);
  const account = await accountOf(stores);
  const trees = await Promise.all(ids.flat().map(async (id) => await stores.accounts(TENANT, id)));
  const roots = trees.flat().filter(({ parentId }) => parentId === null);
  const sum = (of: (root: Account) => number): number => roots.reduce((total, root) => total + of(root), 0);
  return {
    over,
    reserved: account?.reserved,
    steps: account?.used.treeSteps,
    tokens: account?.used.tokens ?? 0,
    ofTrees: {
      steps: sum(({ used }) => used.treeSteps),
      tokens: sum(({ used }) => used.tokens),
      unconfirmed: sum(({ unconfirmed }) => unconfirmed.tokens),
    },
  };
}

const nothing = { tokens: 0, costMicros: 0 };

describe("processes that die while they spend on one owner's account", () => {
  test("exceed no limit and leave nothing reserved in SQLite", async () => {
    const path = temporaryFile();
    const stores = sqliteStores(path);
    const { over, reserved, steps, tokens, ofTrees } = await spendAndDie(path, stores, [
      "commit.after:5",
      "model.result:3",
    ]);
    await stores.close();
    expect({ over, reserved }).toEqual({ over: [], reserved: nothing });
    // Each call is counted once, on its tree and above it.
    expect({ steps, tokens }).toEqual({ steps: ofTrees.steps, tokens: ofTrees.tokens });
    expect(tokens).toBeGreaterThan(LIMIT / 2);
  }, 60_000);
});

describe.skipIf(!redisProgram)("processes that die while they spend on one owner's account in Redis", () => {
  let server: RedisServer;
  beforeAll(async () => {
    server = await RedisServer.start();
  });
  afterAll(() => server.stop());

  test("exceed no limit and leave nothing reserved", async () => {
    const name = ownPrefix().slice(0, -1);
    const stores = redisStores({ url: server.url, prefix: `${name}:` });
    const { over, reserved, steps, tokens, ofTrees } = await spendAndDie(
      `${server.url.replace(/\/$/, "")}/${name}`,
      stores,
      ["outer.charged:3", "outer.committed:4"],
    );
    await stores.close();
    expect({ over, reserved }).toEqual({ over: [], reserved: nothing });
    expect(steps).toBe(ofTrees.steps);
    // Where a process died after it had settled above, the tree has the whole reservation, and the account the real usage.
    expect(tokens).toBeLessThanOrEqual(ofTrees.tokens);
    expect(tokens).toBeGreaterThanOrEqual(ofTrees.tokens - ofTrees.unconfirmed);
    expect(tokens).toBeGreaterThan(LIMIT / 3);
  }, 60_000);
});
