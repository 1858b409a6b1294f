export type ColumnType = "text" | "bigint" | "int" | "boolean";

export interface Table {
  /** Besides `tree`, in the order of a row's key. */
  readonly keys: readonly (readonly [name: string, type: ColumnType])[];
  /** In the order of a row's values. */
  readonly values: readonly (readonly [name: string, type: ColumnType])[];
  /** What happens to a stored row with the same key. Default: its values are replaced. */
  readonly stored?: string;
  /** Changes rows that are known to be stored. */
  readonly isUpdate?: string;
}

const agentKey = ["agent_id", "text"] as const;

const rowTables = {
  agents: {
    keys: [agentKey],
    values: [
      ["tenant", "text"],
      ["parent", "text"],
      ["session_id", "text"],
      ["owner_id", "text"],
      ["created_at", "bigint"],
      ["record", "text"],
    ],
    stored: "UPDATE SET record = excluded.record",
  },
  heads: {
    keys: [agentKey],
    values: [
      ["epoch", "bigint"],
      ["holder", "text"],
      ["seq", "bigint"],
      ["at", "bigint"],
      ["sign", "bigint"],
      ["batch_id", "text"],
      ["open_requests", "int"],
      ["work", "text"],
      ["outcome", "text"],
    ],
  },
  accounts: { keys: [["account_id", "text"]], values: [["account", "text"]] },
  waiters: {
    keys: [
      ["account_id", "text"],
      ["ask_key", "text"],
    ],
    values: [
      ["position", "bigint"],
      ["waiter", "text"],
    ],
  },
  inbox: {
    keys: [agentKey, ["item_key", "text"]],
    values: [["item", "text"]],
    // An item that was taken and posted again is the newest one.
    stored: "UPDATE SET item = excluded.item, n = DEFAULT",
  },
  journal: {
    keys: [["cursor", "bigint"]],
    values: [
      ["agent_id", "text"],
      ["last_seq", "bigint"],
      ["version", "int"],
      ["entries", "text"],
    ],
  },
  messages: {
    keys: [agentKey, ["message_id", "text"]],
    values: [
      ["cursor", "bigint"],
      ["message", "text"],
    ],
    stored: "NOTHING",
  },
  artifacts: {
    keys: [agentKey, ["artifact_id", "text"]],
    values: [
      ["description", "text"],
      ["content", "text"],
    ],
  },
  requests: {
    keys: [agentKey, ["request_id", "text"]],
    values: [
      ["tenant", "text"],
      ["turn_id", "text"],
      ["owner_id", "text"],
      ["status", "text"],
      ["opened_at", "bigint"],
      ["decision_key", "text"],
      ["request", "text"],
    ],
  },
  turns: {
    keys: [agentKey, ["number", "bigint"]],
    values: [
      ["turn_id", "text"],
      ["tenant", "text"],
      ["session_id", "text"],
      ["owner_id", "text"],
      ["turn_key", "text"],
      ["hash", "text"],
      ["status", "text"],
      ["stop_reason", "text"],
      ["opened_at", "bigint"],
      ["changed_at", "bigint"],
    ],
  },
  moves: {
    keys: [agentKey, ["number", "bigint"]],
    values: [
      ["status", "text"],
      ["stop_reason", "text"],
      ["changed_at", "bigint"],
    ],
    isUpdate: "turns",
  },
  steers: {
    keys: [agentKey, ["steer_id", "text"]],
    values: [
      ["state", "text"],
      ["turn_id", "text"],
      ["step", "int"],
      ["hash", "text"],
    ],
  },
  timers: {
    keys: [agentKey, ["timer_id", "text"]],
    values: [
      ["due_at", "bigint"],
      ["is_steady", "boolean"],
      ["timer", "text"],
    ],
  },
  projections: {
    keys: [["name", "text"]],
    values: [["cursor", "bigint"]],
    stored: "UPDATE SET cursor = greatest(stored.cursor, excluded.cursor)",
  },
  processes: { keys: [["process_id", "text"]], values: [["process", "text"]] },
  schedules: {
    keys: [["key", "text"]],
    values: [
      ["due_at", "bigint"],
      ["agent_id", "text"],
      ["owner_id", "text"],
      ["schedule", "text"],
    ],
  },
  outer_rows: {
    keys: [
      ["kind", "text"],
      ["id", "text"],
    ],
    values: [["value", "text"]],
  },
  deletions: {
    keys: [["id_hash", "text"]],
    values: [
      ["deleted_at", "bigint"],
      ["is_pending", "boolean"],
      ["deletion", "text"],
    ],
  },
  definitions: { keys: [["hash", "text"]], values: [["definition", "text"]], stored: "NOTHING" },
  webhooks: {
    keys: [],
    values: [
      ["tenant", "text"],
      ["root", "text"],
      ["due_at", "bigint"],
      ["webhooks", "text"],
    ],
  },
} as const satisfies Readonly<Record<string, Table>>;

export const tables: Readonly<Record<TableName, Table>> = rowTables;

export type TableName = keyof typeof rowTables;

export const tableNames = Object.keys(rowTables) as TableName[];

/** Rows that are deleted with a tree. Cursors of projections are kept. */
export const tablesOfTree = [
  "agents",
  "heads",
  "accounts",
  "waiters",
  "inbox",
  "journal",
  "messages",
  "artifacts",
  "requests",
  "turns",
  "steers",
  "timers",
  "definitions",
  "webhooks",
] as const satisfies readonly TableName[];

type ColumnValue = string | number | boolean | null;

export interface TableRow {
  readonly key: readonly (string | number)[];
  /** `null`: the row is deleted. */
  readonly values: readonly ColumnValue[] | null;
}

/** Identifies a row within its table. */
export function tableKeyOf({ key }: TableRow): string {
  return JSON.stringify(key);
}
