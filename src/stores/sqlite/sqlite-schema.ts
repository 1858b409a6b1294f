import type { DatabaseSync } from "node:sqlite";
import { InvalidInputError, UnsupportedError } from "../../errors/index.ts";

/** The current layout; stored in `PRAGMA user_version`. */
const SCHEMA_VERSION = 3;

/**
 * A commit touches few pages, because each page costs as much as several statements. Integer keys stand for (tenant,
 * agent) and (tenant, root agent). A commit appends one row to `journal`, messages included, and rewrites a short row
 * of `heads` and one of `standings` (the figures of an account) for each account it changes. The figures of a tree are
 * contiguous, many to a page; `accounts` holds the terms of the accounts. `journal.previous` is the agent's row before
 * (0: none) and `heads.cursor` its last one, so that an agent's rows need no index. A turn is in one index while it is
 * unfinished, and in the others from its end on, so that each of them is written once; they ascend, because SQLite adds
 * fastest at the end. `messages` says in which row each
 * message is stored; `heads.open_requests` says whether `requests` need be read. Cursors are never used again, even
 * after a tree was removed: `last_removed` keeps the highest cursor that may be gone. JSON columns are checked by
 * schema when they are read.
 */
const firstLayout = `
  CREATE TABLE trees (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    root_agent_id TEXT NOT NULL,
    UNIQUE (tenant, root_agent_id)
  ) STRICT;
  CREATE TABLE agents (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    tree INTEGER NOT NULL,
    parent_agent_id TEXT,
    session_id TEXT,
    owner_id TEXT,
    created_at INTEGER NOT NULL,
    record TEXT NOT NULL,
    UNIQUE (tenant, agent_id)
  ) STRICT;
  CREATE INDEX agents_by_tree ON agents (tree, agent_id);
  CREATE INDEX agents_by_parent ON agents (tree, parent_agent_id) WHERE parent_agent_id IS NOT NULL;
  CREATE INDEX roots_by_age ON agents (tenant, created_at DESC, agent_id) WHERE parent_agent_id IS NULL;
  CREATE INDEX agents_by_session ON agents (tenant, session_id, agent_id) WHERE session_id IS NOT NULL;
  CREATE INDEX agents_by_owner ON agents (tenant, owner_id, agent_id) WHERE owner_id IS NOT NULL;
  CREATE TABLE heads (
    agent INTEGER PRIMARY KEY,
    epoch INTEGER NOT NULL,
    holder TEXT,
    seq INTEGER NOT NULL,
    at INTEGER NOT NULL,
    sign INTEGER NOT NULL,
    batch_id TEXT,
    open_requests INTEGER NOT NULL,
    cursor INTEGER NOT NULL,
    outcome TEXT,
    work TEXT NOT NULL
  ) STRICT;
  CREATE INDEX heads_at_work ON heads (holder, agent) WHERE work = 'open';
  CREATE TABLE accounts (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    account_id TEXT NOT NULL,
    place INTEGER NOT NULL,
    terms TEXT NOT NULL,
    UNIQUE (tenant, account_id)
  ) STRICT;
  CREATE TABLE standings (
    place INTEGER PRIMARY KEY,
    account INTEGER NOT NULL,
    standing TEXT NOT NULL
  ) STRICT;
  CREATE TABLE waiters (
    account INTEGER NOT NULL,
    ask_key TEXT NOT NULL,
    place INTEGER NOT NULL,
    waiter TEXT NOT NULL,
    PRIMARY KEY (account, ask_key)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE journal (
    cursor INTEGER PRIMARY KEY,
    tree INTEGER NOT NULL,
    agent INTEGER NOT NULL,
    previous INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    version INTEGER NOT NULL,
    entries TEXT NOT NULL,
    messages TEXT
  ) STRICT;
  CREATE INDEX journal_by_tree ON journal (tree);
  CREATE TABLE last_removed (
    id INTEGER PRIMARY KEY CHECK (id = 0),
    cursor INTEGER NOT NULL
  ) STRICT;
  INSERT INTO last_removed VALUES (0, 0);
  CREATE TABLE messages (
    agent INTEGER NOT NULL,
    message_id TEXT NOT NULL,
    cursor INTEGER NOT NULL,
    PRIMARY KEY (agent, message_id)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE artifacts (
    id INTEGER PRIMARY KEY,
    agent INTEGER NOT NULL,
    artifact_id TEXT NOT NULL,
    name TEXT NOT NULL,
    version INTEGER NOT NULL,
    description TEXT NOT NULL,
    content TEXT NOT NULL,
    UNIQUE (agent, artifact_id)
  ) STRICT;
  CREATE UNIQUE INDEX artifacts_by_name ON artifacts (agent, name, version);
  CREATE TABLE requests (
    agent INTEGER NOT NULL,
    request_id TEXT NOT NULL,
    tenant TEXT NOT NULL,
    tree INTEGER NOT NULL,
    turn_id TEXT NOT NULL,
    owner_id TEXT,
    status TEXT NOT NULL,
    opened_at INTEGER NOT NULL,
    decision_key TEXT,
    request TEXT NOT NULL,
    PRIMARY KEY (agent, request_id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX requests_by_opening ON requests (tenant, opened_at, request_id);
  CREATE INDEX requests_by_tree ON requests (tree, opened_at, request_id);
  CREATE INDEX requests_by_owner ON requests (tenant, owner_id, opened_at, request_id) WHERE owner_id IS NOT NULL;
  CREATE INDEX requests_open ON requests (tenant, opened_at, request_id) WHERE status = 'open';
  CREATE INDEX requests_open_by_owner ON requests (tenant, owner_id, opened_at, request_id)
    WHERE status = 'open' AND owner_id IS NOT NULL;
  CREATE UNIQUE INDEX requests_by_key ON requests (tree, decision_key) WHERE decision_key IS NOT NULL;
  CREATE TABLE turns (
    agent INTEGER NOT NULL,
    number INTEGER NOT NULL,
    turn_id TEXT NOT NULL,
    tenant TEXT NOT NULL,
    session_id TEXT,
    owner_id TEXT,
    turn_key TEXT,
    hash TEXT,
    status TEXT NOT NULL,
    stop_reason TEXT,
    opened_at INTEGER NOT NULL,
    changed_at INTEGER NOT NULL,
    PRIMARY KEY (agent, number)
  ) STRICT, WITHOUT ROWID;
  CREATE UNIQUE INDEX turns_by_key ON turns (agent, turn_key) WHERE turn_key IS NOT NULL;
  CREATE INDEX turns_unfinished ON turns (tenant, changed_at, turn_id DESC) WHERE stop_reason IS NULL;
  CREATE INDEX turns_by_change ON turns (tenant, changed_at, turn_id DESC) WHERE stop_reason IS NOT NULL;
  CREATE INDEX turns_by_owner ON turns (tenant, owner_id, changed_at, turn_id DESC)
    WHERE owner_id IS NOT NULL AND stop_reason IS NOT NULL;
  CREATE INDEX turns_by_session ON turns (tenant, session_id, changed_at, turn_id DESC)
    WHERE session_id IS NOT NULL AND stop_reason IS NOT NULL;
  CREATE TABLE inbox (
    id INTEGER PRIMARY KEY,
    agent INTEGER NOT NULL,
    item_key TEXT NOT NULL,
    item TEXT NOT NULL,
    UNIQUE (agent, item_key)
  ) STRICT;
  CREATE TABLE timers (
    agent INTEGER NOT NULL,
    timer_id TEXT NOT NULL,
    due_at INTEGER NOT NULL,
    timer TEXT NOT NULL,
    PRIMARY KEY (agent, timer_id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX timers_by_due ON timers (due_at);
  CREATE TABLE projections (
    tenant TEXT NOT NULL,
    root_agent_id TEXT NOT NULL,
    name TEXT NOT NULL,
    cursor INTEGER NOT NULL,
    PRIMARY KEY (tenant, root_agent_id, name)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE processes (
    process_id TEXT PRIMARY KEY,
    pid INTEGER NOT NULL,
    boot_id TEXT NOT NULL,
    start_time TEXT,
    heartbeat_at INTEGER NOT NULL,
    clock_offset INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
`;

/** The definitions under which agents of a tree have worked, once a tree. */
const definitionsLayout = `
  CREATE TABLE definitions (
    tree INTEGER NOT NULL,
    hash TEXT NOT NULL,
    definition TEXT NOT NULL,
    PRIMARY KEY (tree, hash)
  ) STRICT, WITHOUT ROWID;
`;

/** Receivers outside that are told of a tree's turns. */
const webhooksLayout = `
  CREATE TABLE webhooks (
    tenant TEXT NOT NULL,
    root_agent_id TEXT NOT NULL,
    due_at INTEGER NOT NULL,
    webhooks TEXT NOT NULL,
    PRIMARY KEY (tenant, root_agent_id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX webhooks_by_due ON webhooks (tenant, due_at);
`;

/**
 * The step at index N migrates a file from layout N to N + 1; 0 is an empty file. Steps are only added, never changed.
 */
const steps: readonly ((database: DatabaseSync) => void)[] = [
  (database) => database.exec(firstLayout),
  (database) => database.exec(definitionsLayout),
  (database) => database.exec(webhooksLayout),
];

/**
 * Throws `UnsupportedError` for a file of a newer layout and `InvalidInputError` for a database of another program.
 * Reads only, so that such a file is not touched.
 */
export function checkLayout(database: DatabaseSync, path: string): void {
  const { version, hasTables } = stateOf(database);
  if (version > SCHEMA_VERSION) {
    throw new UnsupportedError(
      `${path} was written by a newer version of this package (layout ${version}); this one reads up to ${SCHEMA_VERSION}`,
      { details: { path, version } },
    );
  }
  if (version === 0 && hasTables) {
    throw new InvalidInputError(`${path} is a database of something else; give the path of a file of its own`, {
      details: { path },
    });
  }
}

/** Migrates the file to the current layout, in one transaction. */
export function migrate(database: DatabaseSync, path: string): void {
  if (stateOf(database).version === SCHEMA_VERSION) return;
  database.exec("BEGIN IMMEDIATE");
  try {
    // Another process may have migrated the file, or filled it with something else, since it was checked.
    checkLayout(database, path);
    for (const step of steps.slice(stateOf(database).version)) step(database);
    database.exec(`PRAGMA user_version = ${SCHEMA_VERSION}`);
    database.exec("COMMIT");
  } catch (error) {
    database.exec("ROLLBACK");
    throw error;
  }
}

/** Reads both values in one statement, because another process may migrate the file between two statements. */
function stateOf(database: DatabaseSync): { readonly version: number; readonly hasTables: boolean } {
  const row = database
    .prepare(
      "SELECT user_version AS version, EXISTS (SELECT 1 FROM sqlite_master) AS has_tables FROM pragma_user_version",
    )
    .get();
  return { version: Number(row?.["version"]), hasTables: row?.["has_tables"] === 1 };
}
