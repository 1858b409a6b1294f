import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { StoreUnavailableError } from "../../src/errors/index.ts";
import type { Stores } from "../../src/stores/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { modelRequested, note, reservationIn, settled, toolStarted } from "../contracts/entry-fixtures.ts";
import { NOW, ROOT, TENANT, TURN } from "../contracts/names.ts";
import { elsewhere, keyOf, LEASE_MS, Owner, openAgent } from "../contracts/stores-fixtures.ts";
import { openChild } from "../contracts/tree-fixtures.ts";
import { temporaryFile } from "./temporary-file.ts";

let path: string;
let mine: Stores;
let theirs: Stores;

beforeEach(() => {
  path = temporaryFile();
  mine = sqliteStores(path, { busyLimitMs: 20_000 });
  theirs = sqliteStores(path, { busyLimitMs: 20_000 });
});

afterEach(async () => {
  await mine.close();
  await theirs.close();
});

/** A hundred model calls of the agent, one after the other. */
async function use(owner: Owner): Promise<void> {
  const { agentId } = owner.key;
  const turnId = `${agentId}#1`;
  const request = modelRequested({ accountId: `turn:${turnId}`, agentId }, { turnId });
  for (let count = 0; count < 100; count += 1) {
    const reservation = reservationIn(await owner.commit({ entries: [request] }));
    await owner.commit(settled(reservation, { tokens: 10, costMicros: 1 }));
  }
}

describe("two clients of one file", () => {
  test("see each other's commands and moves in the very next commit", async () => {
    const owner = await openAgent(mine, { budget: { maxTokens: 1000 } });
    const reservation = reservationIn(await owner.commit({ entries: [modelRequested()] }));
    await theirs.pause(keyOf(), "ann", NOW);
    const start = toolStarted();
    expect((await owner.commit({ entries: [start] })).entries).toMatchObject([{ reason: "paused", agentId: ROOT }]);
    await theirs.resume(keyOf(), "ann", NOW);
    expect((await owner.commit({ entries: [start] })).entries).toMatchObject([{ type: "tool.started" }]);

    await theirs.registerProcess(elsewhere, NOW + 2 * LEASE_MS);
    const taken = await new Owner(theirs, keyOf()).acquire(elsewhere, NOW + 2 * LEASE_MS);
    await taken.commit(settled(reservation, { tokens: 900 }));
    expect(await mine.commit([owner.batch({ entries: [note("late")] })], NOW)).toEqual([
      { type: "stale", epoch: taken.epoch, seq: taken.seq },
    ]);
    const back = await new Owner(mine, keyOf()).acquire(undefined, NOW + 9 * LEASE_MS);
    const refused = await back.commit({ entries: [modelRequested()] });
    expect(refused.entries).toMatchObject([{ reason: "budget", limit: "maxTokens" }]);
  });

  test("a cursor is given once, whoever writes", async () => {
    const root = await openAgent(mine);
    const kid = await openChild(root, "kid");
    const other = await new Owner(theirs, kid.key).acquire();
    const cursors: number[] = [];
    for (let round = 0; round < 20; round += 1) {
      for (const owner of [root, other]) cursors.push((await owner.commit({ entries: [note("x")] })).cursor);
    }
    expect(new Set(cursors).size).toBe(40);
    expect(cursors).toEqual(cursors.toSorted((a, b) => a - b));
    expect((await mine.readTree(TENANT, ROOT, 0, 100)).map((row) => row.cursor)).toEqual(
      expect.arrayContaining(cursors),
    );
  });

  test("lose no update of a shared account when both write at once", async () => {
    const root = await openAgent(mine);
    const kid = await openChild(root, "kid");
    const other = await new Owner(theirs, kid.key).acquire();
    await Promise.all([use(root), use(other)]);
    const accounts = await theirs.accounts(TENANT, ROOT);
    expect(accounts.find((account) => account.id === `turn:${TURN}`)).toMatchObject({
      used: { tokens: 2000, costMicros: 200, treeSteps: 200, steps: 100 },
      reserved: { tokens: 0 },
    });
  });

  test("a write of the other one is noticed; an own one is not news, nor any after listening ended", async () => {
    const owner = await openAgent(mine);
    let calls = 0;
    const heard = Promise.withResolvers<void>();
    const end = mine.onForeignWrite(() => {
      calls += 1;
      heard.resolve();
    });
    await owner.commit({ entries: [note("own")] });
    await theirs.pause(keyOf(), "ann", NOW);
    await heard.promise;
    expect(calls).toBe(1);
    end();
    const again = Promise.withResolvers<void>();
    const endAgain = mine.onForeignWrite(again.resolve);
    await theirs.resume(keyOf(), "ann", NOW);
    await again.promise;
    endAgain();
    expect(calls).toBe(1);
  });
});

describe("a file that another program has locked", () => {
  let locker: DatabaseSync;
  beforeEach(async () => {
    await openAgent(mine);
    locker = new DatabaseSync(path);
    locker.exec("BEGIN IMMEDIATE");
  });
  afterEach(() => locker.close());

  test("is waited for without blocking, and what waited is written in the order it was called", async () => {
    const order: string[] = [];
    const commands = ["pause", "resume", "pause"] as const;
    const waiting = commands.map(async (command) => {
      const outcome = await theirs[command](keyOf(), "ann", NOW);
      order.push(`${command}: ${outcome.type}`);
    });
    // The lock is held until this process has had its turn many times over.
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(order).toEqual([]);
    locker.exec("ROLLBACK");
    await Promise.all(waiting);
    expect(order).toEqual(["pause: marked", "resume: marked", "pause: marked"]);
    expect((await mine.inbox(keyOf())).map((item) => item.kind)).toEqual(["pause", "resume", "pause"]);
  });

  test("is given up after the limit, as a store that is not available, with the code", async () => {
    const hasty = sqliteStores(path, { busyLimitMs: 30 });
    const failed = hasty.pause(keyOf(), "ann", NOW);
    await expect(failed).rejects.toThrow(StoreUnavailableError);
    await expect(failed).rejects.toMatchObject({ retryable: true, details: { code: "SQLITE_BUSY" } });
    expect(await hasty.readAgent(keyOf())).toMatchObject({ pause: null });
    locker.exec("ROLLBACK");
    expect(await hasty.pause(keyOf(), "ann", NOW)).toMatchObject({ type: "marked" });
    await hasty.close();
  });
});
