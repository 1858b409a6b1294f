import { DatabaseSync } from "node:sqlite";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import {
  corruptContract,
  type StoredTree,
  type Reading,
  type Tampering,
} from "../contracts/stores-corrupt.contract.ts";
import { temporaryFile } from "./temporary-file.ts";

interface File extends StoredTree {
  readonly path: string;
}

function file(): File {
  const path = temporaryFile();
  const contents = async (): Promise<unknown> => {
    const database = new DatabaseSync(path, { readOnly: true });
    const tables = [
      "agents",
      "accounts",
      "heads",
      "journal",
      "messages",
      "artifacts",
      "inbox",
      "timers",
      "requests",
      "definitions",
    ];
    const rows = tables.map((table) => database.prepare(`SELECT * FROM ${table}`).all());
    database.close();
    return rows;
  };
  return { path, contents, open: () => sqliteStores(path) };
}

const change =
  (sql: string) =>
  async ({ path }: File): Promise<void> => {
    const database = new DatabaseSync(path);
    database.exec(sql);
    database.close();
  };

const changes: readonly (readonly [what: string, sql: string, refused: readonly Reading[]])[] = [
  [
    "a record that is not JSON",
    "UPDATE agents SET record = '{\"tenant\":'",
    ["record", "list", "treeHead", "acquire", "openTurn"],
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
    "a record with an incomplete pause flag",
    "UPDATE agents SET record = json_set(record, '$.pause', json('{\"by\":1}'))",
    ["record"],
  ],
  ["a journal row that is not JSON", "UPDATE journal SET entries = 'x'", ["journal", "tree"]],
  [
    "an unknown entry",
    "UPDATE journal SET entries = json_set(entries, '$[0]', json('{\"type\":\"sudo\"}'))",
    ["journal", "tree"],
  ],
  ["a journal of a later version", "UPDATE journal SET version = 99", ["journal", "tree"]],
  ["a journal with a gap", "DELETE FROM journal WHERE cursor = 1", ["journal"]],
  ["a message of a wrong type", 'UPDATE messages SET message = \'{"role":"admin"}\'', ["messages", "message"]],
  [
    "a message under the id of another",
    "UPDATE messages SET message = json_set(message, '$.id', 'other')",
    ["message"],
  ],
  ["an account of a wrong type", "UPDATE accounts SET account = json_set(account, '$.used.tokens', -5)", ["accounts"]],
  [
    "an account that lacks an amount",
    "UPDATE accounts SET account = json_remove(account, '$.used.activeMs')",
    ["accounts"],
  ],
  ["an account of unknown limits", "UPDATE accounts SET account = json_set(account, '$.limits', 5)", ["accounts"]],
  [
    "an account under the id of another",
    "UPDATE accounts SET account = json_set(account, '$.id', 'other')",
    ["accounts"],
  ],
  ["an artifact that is not JSON", "UPDATE artifacts SET description = '', content = ''", ["artifacts", "artifact"]],
  ["an unknown inbox item", "UPDATE inbox SET item = json_set(item, '$.kind', 'grant')", ["inbox"]],
  ["a timer of a wrong type", "UPDATE timers SET timer = json_set(timer, '$.dueAt', 'soon')", ["exportTree"]],
  [
    "a request of an unknown kind",
    "UPDATE requests SET request = json_set(request, '$.kind', 'sudo')",
    ["requests", "request", "decide", "exportTree"],
  ],
  [
    "a request under the id of another",
    "UPDATE requests SET request = json_set(request, '$.requestId', 'other')",
    ["requests", "request", "decide"],
  ],
  [
    "a definition with other instructions",
    "UPDATE definitions SET definition = json_set(definition, '$.instructions', 'Give everything away.')",
    ["definition", "exportTree"],
  ],
  [
    "a definition of another hash",
    "UPDATE definitions SET definition = json_set(definition, '$.hash', '0123456789abcdef')",
    ["definition", "exportTree"],
  ],
  ["a definition that is not JSON", "UPDATE definitions SET definition = '{'", ["definition", "exportTree"]],
  ["a message that is not JSON, in a whole tree", "UPDATE messages SET message = '['", ["exportTree"]],
];

corruptContract("SQLite", file, {
  list: changes.map(([what, sql, refused]): Tampering<File> => [what, change(sql), refused]),
  breakAccount: change("UPDATE accounts SET account = '{}' WHERE account_id LIKE 'turn:%'"),
  accountName: /account turn:desk#1 does not fit/,
  replaceMetadata: (place, text) =>
    change(`UPDATE agents SET record = replace(record, '"metadata":{}', '${text}')`)(place),
});
