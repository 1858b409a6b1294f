import type { DatabaseSync } from "node:sqlite";
import { InvalidInputError, UnsupportedError } from "../../errors/index.ts";

/** The current layout; stored in `PRAGMA user_version`. */
const LAYOUT = 6;

/** Every row of a tree with a number that this divides is in the index of trees; the others are reached from it. */
export const ROWS_BETWEEN_MARKS = 32;

/**
 * A commit touches few pages, because each page costs as much as several statements. Integer keys stand for (tenant,
 * agent) and for a tree, which has the key of its first agent. A commit appends one row to `journal`, messages included,
 * and rewrites short rows of `standings`: the head of the agent, and the figures of each account it changes. Those of a
 * tree are contiguous, many to a page; the first one is the head of the tree's first agent and also says where the tree's
 * rows end.
 *
 * Rows of the journal are found without an index that each commit would write. `journal.previous` is the agent's row
 * before (0: none) and `standings.cursor` its last one; `journal.before` is the tree's row before and
 * `standings.tree_cursor` its last one. `journal.number` counts the rows of a tree, and one in 32 is in an index, from
 * which the rows before it are reached. `messages` says in which row each message is stored, up to the agent's row
 * `standings.placed`; the few rows after it are read.
 *
 * A turn is in one index while it is unfinished, and in the others from its end on, so that each of them is written once;
 * they ascend, because SQLite adds fastest at the end. `standings.open_requests` says whether `requests` need be read.
 * Cursors are never used again, even after a tree was removed: `last_removed` keeps the highest cursor that may be gone.
 * The texts of definitions are shared by the trees of a tenant, and stay. JSON columns are checked by schema when they are
 * read; those of the journal have short forms (`short-forms.ts`), in which one character stands for the agent's id, if
 * that is long.
 */
const layout = `
  CREATE TABLE agents (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    tree INTEGER NOT NULL,
    place INTEGER NOT NULL,
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
  CREATE TABLE standings (
    place INTEGER PRIMARY KEY,
    account_id TEXT,
    terms TEXT,
    standing TEXT,
    agent INTEGER,
    epoch INTEGER,
    holder TEXT,
    seq INTEGER,
    at INTEGER,
    sign INTEGER,
    batch_id TEXT,
    open_requests INTEGER,
    cursor INTEGER,
    placed INTEGER,
    tree_cursor INTEGER,
    tree_rows INTEGER,
    outcome TEXT,
    work TEXT,
    CHECK ((agent IS NULL) <> (account_id IS NULL))
  ) STRICT;
  CREATE INDEX heads_at_work ON standings (holder, agent) WHERE work = 'open';
  CREATE TABLE accounts (
    tenant TEXT NOT NULL,
    account_id TEXT NOT NULL,
    place INTEGER NOT NULL,
    PRIMARY KEY (tenant, account_id)
  ) STRICT, WITHOUT ROWID;
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
    before INTEGER NOT NULL,
    number INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    version INTEGER NOT NULL,
    entries TEXT NOT NULL,
    messages TEXT
  ) STRICT;
  CREATE INDEX journal_by_tree ON journal (tree, cursor) WHERE number % ${ROWS_BETWEEN_MARKS} = 0;
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
    agent INTEGER NOT NULL,
    item_key TEXT NOT NULL,
    place INTEGER NOT NULL,
    item TEXT NOT NULL,
    PRIMARY KEY (agent, item_key)
  ) STRICT, WITHOUT ROWID;
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
  CREATE TABLE connections (
    id TEXT PRIMARY KEY,
    pid INTEGER NOT NULL,
    boot_id TEXT NOT NULL,
    start_time TEXT,
    opened_at INTEGER NOT NULL,
    logging INTEGER NOT NULL,
    folded INTEGER NOT NULL
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE definitions (
    tenant TEXT NOT NULL,
    hash TEXT NOT NULL,
    definition TEXT NOT NULL,
    UNIQUE (tenant, hash)
  ) STRICT;
  CREATE TABLE definitions_of_trees (
    tree INTEGER NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (tree, hash)
  ) STRICT, WITHOUT ROWID;
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
 * Throws `UnsupportedError` for a file of another layout and `InvalidInputError` for a database of another program.
 * Reads only, so that such a file is not touched.
 */
export function checkLayout(database: DatabaseSync, path: string): void {
  const { version, hasTables } = stateOf(database);
  if (version > LAYOUT) {
    throw new UnsupportedError(
      `${path} was written by a newer version of this package (layout ${version}); this one reads layout ${LAYOUT}`,
      { details: { path, version } },
    );
  }
  if (version > 0 && version < LAYOUT) {
    throw new UnsupportedError(
      `${path} was written by an older version of this package (layout ${version}); this one reads layout ${LAYOUT}: give the path of a new file`,
      { details: { path, version } },
    );
  }
  if (version === 0 && hasTables) {
    throw new InvalidInputError(`${path} is a database of something else; give the path of a file of its own`, {
      details: { path },
    });
  }
}

/** Makes the tables of an empty file, in one transaction. */
export function layOut(database: DatabaseSync, path: string): void {
  if (stateOf(database).version === LAYOUT) return;
  database.exec("BEGIN IMMEDIATE");
  try {
    // Another process may have filled the file, with these tables or something else, since it was checked.
    checkLayout(database, path);
    if (stateOf(database).version === 0) database.exec(`${layout} PRAGMA user_version = ${LAYOUT}`);
    database.exec("COMMIT");
  } catch (error) {
    database.exec("ROLLBACK");
    throw error;
  }
}

/** Reads both values in one statement, because another process may fill the file between two statements. */
function stateOf(database: DatabaseSync): { readonly version: number; readonly hasTables: boolean } {
  const row = database
    .prepare(
      "SELECT user_version AS version, EXISTS (SELECT 1 FROM sqlite_master) AS has_tables FROM pragma_user_version",
    )
    .get();
  return { version: Number(row?.["version"]), hasTables: row?.["has_tables"] === 1 };
}
