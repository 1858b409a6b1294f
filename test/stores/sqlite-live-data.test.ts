import { readFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { expect, test } from "vitest";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { messageOf, note } from "../contracts/entry-fixtures.ts";
import { NOW, TENANT, TURN } from "../contracts/names.ts";
import { approved, opening, requestOf } from "../contracts/request-fixtures.ts";
import { type BatchParts, agentKey, openAgent } from "../contracts/stores-fixtures.ts";
import { temporaryFile } from "./temporary-file.ts";

const secret = "the-cleared-words";

/** Whether the live data of the file, with its log, contain a text. A copy without the freed pages contains only these. */
async function holds(path: string, text: string): Promise<boolean> {
  const stores = sqliteStores(path);
  await stores.listAgents({ tenant: TENANT });
  await stores.close();
  const copy = temporaryFile("copy.db");
  const database = new DatabaseSync(path);
  database.exec(`VACUUM INTO '${copy}'`);
  database.close();
  return readFileSync(copy).includes(text);
}

test("cleared data is removed from the file's live data, and later data is kept", async () => {
  const path = temporaryFile();
  const stores = sqliteStores(path);
  const owner = await openAgent(stores);
  const artifact = {
    artifactId: "a",
    name: "a",
    contentType: "text/plain",
    size: 1,
    createdAt: NOW,
    turnId: null,
    callId: null,
    content: secret,
  };
  const full: BatchParts = { entries: [note("said")], messages: [messageOf("m1", secret)] };
  await owner.commit(full);
  expect(await holds(path, secret)).toBe(true);
  await owner.commit({
    entries: [note("cleared")],
    cleared: "conversation",
    messages: [messageOf("m2", "kept words")],
  });
  expect(await holds(path, secret)).toBe(false);
  expect(await holds(path, "kept words")).toBe(true);
  await owner.commit({ entries: [note("saved")], artifacts: [artifact] });
  expect(await holds(path, secret)).toBe(true);
  await owner.commit({ entries: [note("cleared")], cleared: "all" });
  expect(await holds(path, secret)).toBe(false);
  expect(await stores.readJournal(agentKey(), 1)).toHaveLength(5);
  await stores.close();
});

test("a commit of an agent without open requests does not touch their table, including the end of a turn", async () => {
  const path = temporaryFile();
  const stores = sqliteStores(path);
  const owner = await openAgent(stores);
  const [decided, closed] = [requestOf(owner, 0), requestOf(owner, 1)];
  await owner.commit(opening(decided, closed));
  await stores.decide(agentKey(), decided.requestId, approved, NOW);
  await owner.commit({ entries: [note("goes on")], closedRequests: [closed.requestId] });
  const closedTurn = { entries: [note("ended")], closedTurnId: TURN };
  const dropper = new DatabaseSync(path);
  dropper.exec("DROP TABLE requests");
  dropper.close();
  await owner.commit({ entries: [note("one")], messages: [messageOf("m1")] });
  await owner.commit(closedTurn);
  await expect(owner.commit(opening(requestOf(owner, 0)))).rejects.toThrow(/no such table: requests/);
  await owner.commit({ entries: [note("goes on")] });
  await stores.close();
});
