import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { StoreUnavailableError } from "../../src/errors/index.ts";
import type { Stores } from "../../src/stores/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { NOW } from "../contracts/names.ts";
import { elsewhere, agentKey, openAgent } from "../contracts/stores-fixtures.ts";
import { sharingContract } from "../contracts/stores-sharing.contract.ts";
import { temporaryFile } from "./temporary-file.ts";

sharingContract("file", () => {
  const file = temporaryFile();
  const options = { busyLimitMs: 20_000 };
  return { mine: sqliteStores(file, options), theirs: sqliteStores(file, options) };
});

describe("a file that another program has locked", () => {
  let path: string;
  let mine: Stores;
  let theirs: Stores;
  let locker: DatabaseSync;
  beforeEach(async () => {
    path = temporaryFile();
    mine = sqliteStores(path);
    theirs = sqliteStores(path);
    await openAgent(mine);
    // Both have written, so that no log is left that a reader would have to copy into the database first.
    await theirs.registerProcess(elsewhere, NOW);
    locker = new DatabaseSync(path);
    locker.exec("BEGIN IMMEDIATE");
  });
  afterEach(async () => {
    locker.close();
    await mine.close();
    await theirs.close();
  });

  test("is awaited without blocking, and waiting writes are stored in the order of the calls", async () => {
    const order: string[] = [];
    const commands = ["pause", "resume", "pause"] as const;
    const waiting = commands.map(async (command) => {
      const outcome = await theirs[command](agentKey(), "ann", NOW);
      order.push(`${command}: ${outcome.type}`);
    });
    // The lock is held while the event loop of this process turns many times.
    for (let turn = 0; turn < 20; turn += 1) await new Promise((resolve) => setImmediate(resolve));
    expect(order).toEqual([]);
    locker.exec("ROLLBACK");
    await Promise.all(waiting);
    expect(order).toEqual(["pause: marked", "resume: marked", "pause: marked"]);
    expect((await mine.inbox(agentKey())).map((item) => item.kind)).toEqual(["pause", "resume", "pause"]);
  });

  test("is given up after the timeout as an unavailable store, with the code", async () => {
    const hasty = sqliteStores(path, { busyLimitMs: 30 });
    const failed = hasty.pause(agentKey(), "ann", NOW);
    await expect(failed).rejects.toThrow(StoreUnavailableError);
    await expect(failed).rejects.toMatchObject({ retryable: true, details: { code: "SQLITE_BUSY" } });
    expect(await hasty.readAgent(agentKey())).toMatchObject({ pause: null });
    locker.exec("ROLLBACK");
    expect(await hasty.pause(agentKey(), "ann", NOW)).toMatchObject({ type: "marked" });
    await hasty.close();
  });
});
