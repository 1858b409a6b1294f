// Lists over thousands of trees: the cost of a page depends on its rows, not on the size of the store.
import { DatabaseSync } from "node:sqlite";
import { afterAll, afterEach, beforeAll, describe, expect, test, vi } from "vitest";
import { agentPage } from "../../../src/cli/commands/list.ts";
import { requestPage } from "../../../src/cli/commands/requests.ts";
import { findAgent } from "../../../src/cli/job/find-agent.ts";
import { findRequest } from "../../../src/cli/job/find-request.ts";
import { memoryStores, type Stores } from "../../../src/stores/index.ts";
import { sqliteStores } from "../../../src/stores/sqlite.ts";
import { temporaryFile } from "../../stores/temporary-file.ts";
import { amount } from "../../support/full.ts";
import { commandsOf } from "../../support/redis-counts.ts";
import { redisProgram } from "../../support/redis-server.ts";
import { storesOn } from "../../support/redis-stores.ts";
import { redisOfSuite } from "../../support/redis-suite.ts";
import { plantTrees } from "../support/many-trees.ts";

const TREES = amount(3_000, 600);
const PAGE = 20;

interface Counted {
  readonly stores: Stores;
  calls: number;
  /** All records that were returned. */
  records: number;
}

function counted(stores: Stores): Counted {
  const count: Counted = {
    stores: new Proxy(stores, { get: (target, name) => spied(target, name) }),
    calls: 0,
    records: 0,
  };
  function spied(target: Stores, name: string | symbol): unknown {
    const given: unknown = Reflect.get(target, name);
    if (typeof given !== "function") return given;
    return async (...args: readonly unknown[]) => {
      const answer: unknown = await Reflect.apply(given, target, args);
      count.calls += 1;
      count.records += Array.isArray(answer) ? answer.length : 1;
      return answer;
    };
  }
  return count;
}

/** The counts of several pages, each continued after the previous one. */
async function allPages(
  next: (after: string | undefined) => Promise<{ last: string | undefined; ids: string[]; hasMore: boolean }>,
) {
  const ids: string[] = [];
  for (let after: string | undefined; ; ) {
    const page = await next(after);
    ids.push(...page.ids);
    if (!page.hasMore) return ids;
    after = page.last;
  }
}

function contract(open: () => Promise<Stores>, more?: (stores: () => Stores) => void): void {
  let stores: Stores;
  let newestFirst: readonly string[];
  beforeAll(async () => {
    stores = await open();
    newestFirst = await plantTrees(stores, TREES);
  });
  afterAll(() => stores.close());

  test("list: every root once, newest first; a page reads its roots with their trees, and one more", async () => {
    const listed = await allPages(async (after) => {
      const { listed: page, hasMore } = await agentPage(stores, 500, after);
      return { ids: page.map(({ agentId }) => agentId), last: page.at(-1)?.cursor, hasMore };
    });
    expect(listed).toEqual(newestFirst);
    const count = counted(stores);
    const { listed: page } = await agentPage(count.stores, PAGE, `${Number.MAX_SAFE_INTEGER}:first`);
    expect(page.map(({ agentId }) => agentId)).toEqual(newestFirst.slice(0, PAGE));
    // The roots and one more; for each its owner, its tree and its open requests.
    expect(count.calls).toBe(1 + 3 * PAGE);
    expect(count.records).toBeLessThanOrEqual(PAGE + 1 + 3 * PAGE);
  });

  test("requests: every one once, oldest first; a page reads its requests and their agents, and one more", async () => {
    const listed = await allPages(async (after) => {
      const { placed, hasMore } = await requestPage(stores, { limit: 70, after });
      const ids = placed.map(({ request }) => request.requestId);
      return { ids, last: ids.at(-1), hasMore };
    });
    const expected = newestFirst.toReversed().flatMap((id, index) => (index % 10 === 0 ? [`${id}#1:1:0:1`] : []));
    expect(listed).toEqual(expected);
    const count = counted(stores);
    const { placed } = await requestPage(count.stores, { limit: PAGE });
    expect(placed[0]?.path).toBe(`clerk ${newestFirst.at(-1)}`);
    expect(count.calls).toBe(1 + PAGE);
    expect(count.records).toBe(PAGE + 1 + PAGE);
  });

  test("an agent and its request are found by the start of an id without reading all", async () => {
    const count = counted(stores);
    expect((await findAgent(count.stores, `job-${TREES - 1}`)).agentId).toBe(`job-${TREES - 1}`);
    await expect(findAgent(count.stores, "job-29")).resolves.toMatchObject({ agentId: "job-29" });
    await expect(findAgent(count.stores, "job-2")).resolves.toMatchObject({ agentId: "job-2" });
    await expect(findAgent(count.stores, "job-")).rejects.toThrow(
      /matches more than 5 agents; .*: job-0, job-1, job-10, /,
    );
    await expect(findAgent(count.stores, "desk")).rejects.toThrow(/there is no agent "desk"/);
    const asking = newestFirst.at(-1) ?? "";
    expect((await findRequest(count.stores, `${asking}#1:1`, "approved")).agentId).toBe(asking);
    expect((await findRequest(count.stores, `${asking}#1:1:0:1`, "approved")).agentId).toBe(asking);
    expect(count.records).toBeLessThan(40);
  });

  more?.(() => stores);
}

describe("in memory", () => {
  contract(async () => memoryStores());
});

describe("SQLite", () => {
  afterEach(() => vi.restoreAllMocks());
  contract(
    async () => sqliteStores(":memory:"),
    () => {
      test("no statement of a page scans a table or sorts one", async () => {
        const path = temporaryFile();
        const file = sqliteStores(path);
        await plantTrees(file, 20);
        const prepared = vi.spyOn(DatabaseSync.prototype, "prepare");
        await agentPage(file, 5, "9:x");
        await agentPage(file, 5, undefined);
        await requestPage(file, { limit: 1 });
        await requestPage(file, { limit: 1, after: "job-0#1:1:0:1" });
        await requestPage(file, { limit: 1, all: true });
        const lists = prepared.mock.calls.map(([sql]) => sql).filter((sql) => sql.includes("ORDER BY"));
        await file.close();
        const database = new DatabaseSync(path);
        expect(new Set(lists).size).toBeGreaterThanOrEqual(5);
        for (const sql of lists) {
          const values = Array.from(sql.matchAll(/\?/g), () => 1);
          const plan = database.prepare(`EXPLAIN QUERY PLAN ${sql}`).all(...values);
          const steps = plan.map(({ detail }) => String(detail)).join("; ");
          expect(steps, sql).toMatch(/USING (?:COVERING )?INDEX/);
          expect(steps, sql).not.toMatch(/^SCAN|; SCAN|TEMP B-TREE/);
        }
        database.close();
      });
    },
  );
});

describe.skipIf(!redisProgram)("Redis", () => {
  const redis = redisOfSuite();

  contract(
    async () => storesOn(redis.server),
    (stores) => {
      test("a page needs commands only for its rows", async () => {
        const list = await commandsOf(redis.client, () => agentPage(stores(), PAGE, undefined));
        expect(list).toBeLessThanOrEqual(2 + (PAGE + 1) + 6 * PAGE);
        const requests = await commandsOf(redis.client, () => requestPage(stores(), { limit: PAGE }));
        expect(requests).toBeLessThanOrEqual(2 + 3 * (PAGE + 1));
      });
    },
  );
});
