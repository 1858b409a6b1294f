import { DatabaseSync } from "node:sqlite";
import { describe, expect, test } from "vitest";
import { CorruptRecordError } from "../../src/errors/index.ts";
import type { Stores } from "../../src/stores/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { messageOf, note } from "../contracts/entry-fixtures.ts";
import { NOW, ROOT, TENANT } from "../contracts/names.ts";
import { approved, opening, requestOf } from "../contracts/request-fixtures.ts";
import { keyOf, Owner, openAgent } from "../contracts/stores-fixtures.ts";
import { temporaryFile } from "./temporary-file.ts";

const artifact = { artifactId: "a1", name: "a", contentType: "text/plain", size: 1, createdAt: NOW, content: "x" };

/** A file with one agent that has a bit of everything, changed behind its back. */
async function tampered(sql: string): Promise<{ path: string; contents: () => unknown }> {
  const path = temporaryFile();
  const stores = sqliteStores(path);
  const owner = await openAgent(stores, { turnBudget: { deadline: NOW + 9 } });
  await owner.commit({ entries: [note("one")], messages: [messageOf("m1")], artifacts: [artifact] });
  await owner.commit(opening(requestOf(owner, 0)));
  await stores.openTurn(keyOf(), { input: "go", actorId: null, limits: null, ifBusy: "refuse" }, NOW);
  await stores.close();
  const change = new DatabaseSync(path);
  change.exec(sql);
  change.close();
  const contents = (): unknown => {
    const database = new DatabaseSync(path, { readOnly: true });
    const tables = ["agents", "heads", "accounts", "journal", "artifacts", "inbox", "timers", "requests"];
    const rows = tables.map((table) => database.prepare(`SELECT * FROM ${table}`).all());
    database.close();
    return rows;
  };
  return { path, contents };
}

const readings: Record<string, (stores: Stores) => Promise<unknown>> = {
  record: (stores) => stores.readAgent(keyOf()),
  list: (stores) => stores.listAgents({ tenant: TENANT }),
  acquire: (stores) => stores.acquire(keyOf(), "here", 1000, NOW),
  openTurn: (stores) => stores.openTurn(keyOf(), { input: null, actorId: null, limits: null, ifBusy: "queue" }, NOW),
  journal: (stores) => stores.readJournal(keyOf(), 1),
  tree: (stores) => stores.readTree(TENANT, ROOT, 0, 10),
  messages: (stores) => stores.messages(keyOf()),
  message: (stores) => stores.messagesById(keyOf(), ["m1"]),
  artifacts: (stores) => stores.artifacts(keyOf()),
  artifact: (stores) => stores.artifact(keyOf(), "a1"),
  inbox: (stores) => stores.inbox(keyOf()),
  accounts: (stores) => stores.accounts(TENANT, ROOT),
  requests: (stores) => stores.requests({ tenant: TENANT }),
  request: (stores) => stores.request(keyOf(), `${ROOT}#1:1:0:1`),
  decide: (stores) => stores.decide(keyOf(), `${ROOT}#1:1:0:1`, approved, NOW),
  exportTree: (stores) => stores.exportTree(TENANT, ROOT),
  timers: (stores) => stores.dueTimers(NOW + 99, 10),
};

describe("a stored record that was tampered with is refused and left as it is (row S10)", () => {
  test.each([
    [
      "a record that is no JSON",
      "UPDATE agents SET record = '{\"tenant\":'",
      ["record", "list", "acquire", "openTurn"],
    ],
    [
      "a record of a wrong type",
      "UPDATE agents SET record = json_set(record, '$.turnCount', 'many')",
      ["record", "openTurn"],
    ],
    [
      "a record that lacks a field",
      "UPDATE agents SET record = json_remove(record, '$.queuedTurnIds')",
      ["record", "list"],
    ],
    [
      "another agent's record",
      "UPDATE agents SET record = json_set(record, '$.agentId', 'other')",
      ["record", "acquire"],
    ],
    [
      "a record with half a mark",
      "UPDATE agents SET record = json_set(record, '$.pause', json('{\"by\":1}'))",
      ["record"],
    ],
    ["a journal row that is no JSON", "UPDATE journal SET entries = 'x'", ["journal", "tree"]],
    ["an unknown entry", "UPDATE journal SET entries = json_set(entries, '$[0].type', 'sudo')", ["journal", "tree"]],
    ["a journal of a later version", "UPDATE journal SET version = 99", ["journal", "tree"]],
    ["a journal that runs in a ring", "UPDATE journal SET previous = cursor", ["journal"]],
    ["a journal with a gap", "DELETE FROM journal WHERE cursor = 1", ["journal", "messages"]],
    [
      "a message of a wrong type",
      'UPDATE journal SET messages = \'[{"role":"admin"}]\' WHERE messages IS NOT NULL',
      ["messages", "message"],
    ],
    [
      "an account of a wrong type",
      "UPDATE accounts SET account = json_set(account, '$.used.tokens', -5)",
      ["accounts"],
    ],
    ["an artifact that is no JSON", "UPDATE artifacts SET description = '', content = ''", ["artifacts", "artifact"]],
    ["an unknown inbox item", "UPDATE inbox SET item = json_set(item, '$.kind', 'grant')", ["inbox"]],
    ["a timer of a wrong type", "UPDATE timers SET timer = json_set(timer, '$.dueAt', 'soon')", ["timers"]],
    [
      "a request of an unknown kind",
      "UPDATE requests SET request = json_set(request, '$.kind', 'sudo')",
      ["requests", "request", "decide", "exportTree"],
    ],
    [
      "another request in the place of one",
      "UPDATE requests SET request = json_set(request, '$.requestId', 'other')",
      ["requests", "request", "decide"],
    ],
    [
      "a message that is no JSON, in a whole tree",
      "UPDATE journal SET messages = '[' WHERE messages IS NOT NULL",
      ["exportTree"],
    ],
  ])("%s", async (_what, sql, refused) => {
    const { path, contents } = await tampered(sql);
    const before = contents();
    const stores = sqliteStores(path);
    for (const name of refused) await expect(readings[name]?.(stores), name).rejects.toThrow(CorruptRecordError);
    await stores.close();
    expect(contents()).toEqual(before);
  });

  test("a batch of an agent whose account is corrupt is refused alone, and says which account", async () => {
    const { path } = await tampered("UPDATE accounts SET account = '{}' WHERE account_id LIKE 'turn:%'");
    const stores = sqliteStores(path);
    const owner = await new Owner(stores, keyOf()).acquire();
    const moves = [{ type: "activity", accountId: `turn:${ROOT}#1`, isActive: true } as const];
    await expect(owner.commit({ entries: [note("x")], moves })).rejects.toThrow(/account turn:desk#1 does not fit/);
    expect((await owner.commit({ entries: [note("fine")] })).entries).toHaveLength(1);
    await stores.close();
  });
});

test("markers of classes and prototypes in a stored record become nothing but data", async () => {
  const marked = `UPDATE agents SET record = replace(record, '"metadata":{}',
    '"metadata":{"__proto__":{"isAdmin":true},"constructor":{"name":"Agent"},"$class":"Agent"}')`;
  const { path } = await tampered(marked);
  const stores = sqliteStores(path);
  const record = await stores.readAgent(keyOf());
  expect(Object.getPrototypeOf(record?.metadata)).toBe(Object.prototype);
  expect(record?.metadata["isAdmin"]).toBeUndefined();
  expect(record?.metadata).toEqual({ constructor: { name: "Agent" }, $class: "Agent" });
  expect(({} as Record<string, unknown>)["isAdmin"]).toBeUndefined();
  await stores.close();
});
