import { readFileSync } from "node:fs";
import { expect, onTestFinished, test } from "vitest";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { note } from "../contracts/entry-fixtures.ts";
import { NOW } from "../contracts/names.ts";
import { openAgent } from "../contracts/stores-fixtures.ts";
import { temporaryFile } from "./temporary-file.ts";

const HEADER = 32;
const FRAME_HEADER = 24;

/** The number of transactions in the write-ahead log: the last frame of each contains the size of the file after it. */
function transactionsIn(path: string): number {
  const log = readFileSync(`${path}-wal`);
  const frame = FRAME_HEADER + log.readUInt32BE(8);
  let count = 0;
  for (let at = HEADER; at + frame <= log.length; at += frame) if (log.readUInt32BE(at + 4) > 0) count += 1;
  return count;
}

test("concurrent commits and commands of many agents share one transaction", async () => {
  const path = temporaryFile();
  const stores = sqliteStores(path);
  onTestFinished(() => stores.close());
  const names = Array.from({ length: 20 }, (_, index) => `agent-${index}`);
  const owners = [];
  for (const agentId of names) owners.push(await openAgent(stores, { agentId }));
  const before = transactionsIn(path);
  const [first, ...others] = owners.map((owner) => owner.batch({ entries: [note("at once")] }));
  const outcomes = await Promise.all([
    stores.commit(others, NOW),
    ...(first ? [stores.commit([first], NOW)] : []),
    ...owners.map(({ key }) => stores.pause(key, "ann", NOW)),
  ]);
  expect(outcomes.flat().map(({ type }) => type)).toEqual([
    ...names.map(() => "committed"),
    ...names.map(() => "marked"),
  ]);
  expect(transactionsIn(path) - before).toBe(1);
});
