import type { Migration } from "./sqlite-migration.ts";

/**
 * Integer keys stand for (tenant, agent): `agent` for an agent, `root` for a tree, by its root agent. Columns contain the values by which
 * rows are searched and sorted; the rest of a row is JSON with named fields, which is checked by schema when it is read. The views are
 * for people.
 *
 * A turn is in one index while it is unfinished, and in the others after its end, so that each index is written once. `heads` is separate
 * from `agents` because each commit changes it. Definitions are shared by the trees of a tenant, and are kept when a tree is removed.
 * Cursors of the journal are never reused: when a tree is removed, a row without entries and agent takes the next cursor, so that
 * `AUTOINCREMENT` with its table of sequences is not needed. Messages of an agent are sorted by `id`.
 */
const tables = `
  CREATE TABLE agents (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    agent_id TEXT NOT NULL,
    root INTEGER NOT NULL,
    parent_agent_id TEXT,
    session_id TEXT,
    owner_id TEXT,
    created_at INTEGER NOT NULL,
    record TEXT NOT NULL,
    UNIQUE (tenant, agent_id)
  ) STRICT;
  CREATE INDEX agents_by_root ON agents (root, agent_id);
  CREATE INDEX agents_by_parent ON agents (root, parent_agent_id) WHERE parent_agent_id IS NOT NULL;
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
    work TEXT NOT NULL,
    outcome TEXT
  ) STRICT;
  CREATE INDEX heads_at_work ON heads (holder, agent) WHERE work = 'open';
  CREATE TABLE accounts (
    id INTEGER PRIMARY KEY,
    tenant TEXT NOT NULL,
    account_id TEXT NOT NULL,
    root INTEGER NOT NULL,
    account TEXT NOT NULL,
    UNIQUE (tenant, account_id)
  ) STRICT;
  CREATE INDEX accounts_by_root ON accounts (root);
  CREATE TABLE waiters (
    account INTEGER NOT NULL,
    ask_key TEXT NOT NULL,
    position INTEGER NOT NULL,
    waiter TEXT NOT NULL,
    PRIMARY KEY (account, ask_key)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE journal (
    cursor INTEGER PRIMARY KEY,
    root INTEGER NOT NULL,
    agent INTEGER NOT NULL,
    last_seq INTEGER NOT NULL,
    version INTEGER NOT NULL,
    entries TEXT NOT NULL
  ) STRICT;
  CREATE INDEX journal_by_root ON journal (root);
  CREATE INDEX journal_by_agent ON journal (agent, last_seq);
  CREATE TABLE messages (
    id INTEGER PRIMARY KEY,
    agent INTEGER NOT NULL,
    message_id TEXT NOT NULL,
    cursor INTEGER NOT NULL,
    message TEXT NOT NULL,
    UNIQUE (agent, message_id)
  ) STRICT;
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
    root INTEGER NOT NULL,
    turn_id TEXT NOT NULL,
    owner_id TEXT,
    status TEXT NOT NULL,
    opened_at INTEGER NOT NULL,
    decision_key TEXT,
    request TEXT NOT NULL,
    PRIMARY KEY (agent, request_id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX requests_by_opening ON requests (tenant, opened_at, request_id);
  CREATE INDEX requests_by_root ON requests (root, opened_at, request_id);
  CREATE INDEX requests_by_owner ON requests (tenant, owner_id, opened_at, request_id) WHERE owner_id IS NOT NULL;
  CREATE INDEX requests_open ON requests (tenant, opened_at, request_id) WHERE status = 'open';
  CREATE INDEX requests_open_by_owner ON requests (tenant, owner_id, opened_at, request_id)
    WHERE status = 'open' AND owner_id IS NOT NULL;
  CREATE UNIQUE INDEX requests_by_key ON requests (root, decision_key) WHERE decision_key IS NOT NULL;
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
  CREATE TABLE definitions (
    tenant TEXT NOT NULL,
    hash TEXT NOT NULL,
    definition TEXT NOT NULL,
    UNIQUE (tenant, hash)
  ) STRICT;
  CREATE TABLE definitions_of_trees (
    root INTEGER NOT NULL,
    hash TEXT NOT NULL,
    PRIMARY KEY (root, hash)
  ) STRICT, WITHOUT ROWID;
  CREATE TABLE webhooks (
    tenant TEXT NOT NULL,
    root_agent_id TEXT NOT NULL,
    due_at INTEGER NOT NULL,
    webhooks TEXT NOT NULL,
    PRIMARY KEY (tenant, root_agent_id)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX webhooks_by_due ON webhooks (tenant, due_at);
  CREATE VIEW team AS
    SELECT tenant, agent_id, parent_agent_id, session_id, owner_id, created_at, record ->> '$.definition.name' AS name,
      record ->> '$.status' AS status, record ->> '$.openTurnId' AS open_turn_id, record
    FROM agents;
  CREATE VIEW conversation AS
    SELECT tenant, agent_id, cursor, message ->> '$.role' AS role, message ->> '$.content' AS content, message
    FROM messages JOIN agents ON agents.id = messages.agent ORDER BY cursor, messages.id;
  CREATE VIEW spending AS
    SELECT tenant, account ->> '$.agentId' AS agent_id, account ->> '$.turnId' AS turn_id,
      account ->> '$.used.tokens' AS tokens, account ->> '$.used.costMicros' AS cost_micros, account
    FROM accounts;
  CREATE VIEW entries AS
    SELECT tenant, agent_id, cursor, entry.value ->> '$.seq' AS seq, entry.value ->> '$.at' AS at,
      entry.value ->> '$.turnId' AS turn_id, entry.value ->> '$.type' AS type, entry.value AS entry
    FROM journal JOIN agents ON agents.id = journal.agent JOIN json_each(journal.entries) AS entry
    ORDER BY cursor, entry.id;
`;

export const firstTables: Migration = {
  number: 1,
  troupe: "0.1.0",
  apply: (database) => database.exec(tables),
};
