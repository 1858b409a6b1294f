import type { Migration } from "./postgres-migration.ts";

/**
 * `tree` is the integer key of a tree; the other keys are the ids themselves, sorted by their bytes. Columns contain the values by which
 * rows are searched and sorted; the rest of a row is JSON as text, with named fields, which is checked by schema when it is read. `jsonb`
 * would refuse texts with NUL. The identity columns `n` keep the order in which rows were created.
 *
 * Processes, and the schedules, deletions and accounts above the
 * roots of a tenant, are stored like trees of their own. `trees.version` is a time in microseconds, which grows with each write to the tree and is never used twice; `writer` and `write_no` name
 * its last write, and `receipts` the last writes of other processes. `heads` is separate from `agents`, and both `heads` and `trees` have
 * free space in their pages, because each commit changes them. A turn is in one index while it is unfinished, and in the others after its
 * end.
 */
function tables(schema: string): readonly string[] {
  const id = `text COLLATE "C"`;
  return [
    `CREATE TABLE ${schema}.trees (
      id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
      tenant ${id} NOT NULL, root ${id} NOT NULL,
      version bigint NOT NULL, last_cursor bigint NOT NULL, agents int NOT NULL, imports int NOT NULL,
      writer text NOT NULL, write_no bigint NOT NULL,
      UNIQUE (tenant, root)
    ) WITH (fillfactor = 60)`,
    `CREATE TABLE ${schema}.receipts (
      tree bigint NOT NULL, writer text NOT NULL, write_no bigint NOT NULL, at timestamptz NOT NULL,
      PRIMARY KEY (tree, writer)
    )`,
    `CREATE TABLE ${schema}.agents (
      tree bigint NOT NULL, agent_id ${id} NOT NULL,
      n bigint GENERATED ALWAYS AS IDENTITY,
      tenant ${id} NOT NULL, parent ${id}, session_id ${id}, owner_id ${id},
      created_at bigint NOT NULL, record text NOT NULL,
      PRIMARY KEY (tree, agent_id)
    )`,
    `CREATE UNIQUE INDEX agents_by_n ON ${schema}.agents (n)`,
    `CREATE INDEX agents_by_id ON ${schema}.agents (tenant, agent_id)`,
    `CREATE INDEX agents_by_parent ON ${schema}.agents (tree, parent) WHERE parent IS NOT NULL`,
    `CREATE INDEX roots_by_age ON ${schema}.agents (tenant, created_at DESC, agent_id) WHERE parent IS NULL`,
    `CREATE INDEX agents_by_session ON ${schema}.agents (tenant, session_id, agent_id) WHERE session_id IS NOT NULL`,
    `CREATE INDEX agents_by_owner ON ${schema}.agents (tenant, owner_id, agent_id) WHERE owner_id IS NOT NULL`,
    `CREATE TABLE ${schema}.heads (
      tree bigint NOT NULL, agent_id ${id} NOT NULL,
      epoch bigint NOT NULL, holder text, seq bigint NOT NULL, at bigint NOT NULL, sign bigint NOT NULL,
      batch_id text, open_requests int NOT NULL, work text NOT NULL, outcome text,
      PRIMARY KEY (tree, agent_id)
    ) WITH (fillfactor = 60)`,
    `CREATE INDEX heads_at_work ON ${schema}.heads (holder) WHERE work = 'open'`,
    `CREATE TABLE ${schema}.accounts (
      tree bigint NOT NULL, account_id ${id} NOT NULL, n bigint GENERATED ALWAYS AS IDENTITY, account text NOT NULL,
      PRIMARY KEY (tree, account_id)
    ) WITH (fillfactor = 60)`,
    `CREATE TABLE ${schema}.waiters (
      tree bigint NOT NULL, account_id ${id} NOT NULL, ask_key ${id} NOT NULL, position bigint NOT NULL,
      waiter text NOT NULL,
      PRIMARY KEY (tree, account_id, ask_key)
    )`,
    `CREATE TABLE ${schema}.journal (
      tree bigint NOT NULL, cursor bigint NOT NULL, agent_id ${id} NOT NULL, last_seq bigint NOT NULL,
      version int NOT NULL, entries text NOT NULL,
      PRIMARY KEY (tree, cursor)
    )`,
    `CREATE INDEX journal_by_agent ON ${schema}.journal (tree, agent_id, last_seq)`,
    `CREATE TABLE ${schema}.messages (
      tree bigint NOT NULL, agent_id ${id} NOT NULL, message_id ${id} NOT NULL, n bigint GENERATED ALWAYS AS IDENTITY,
      cursor bigint NOT NULL, message text NOT NULL,
      PRIMARY KEY (tree, agent_id, message_id)
    )`,
    `CREATE INDEX messages_in_order ON ${schema}.messages (tree, agent_id, n)`,
    `CREATE TABLE ${schema}.artifacts (
      tree bigint NOT NULL, agent_id ${id} NOT NULL, artifact_id ${id} NOT NULL, n bigint GENERATED ALWAYS AS IDENTITY,
      description text NOT NULL, content text NOT NULL,
      PRIMARY KEY (tree, agent_id, artifact_id)
    )`,
    `CREATE TABLE ${schema}.requests (
      tree bigint NOT NULL, agent_id ${id} NOT NULL, request_id ${id} NOT NULL, tenant ${id} NOT NULL,
      turn_id ${id} NOT NULL, owner_id ${id}, status text NOT NULL, opened_at bigint NOT NULL, decision_key text,
      request text NOT NULL,
      PRIMARY KEY (tree, agent_id, request_id)
    )`,
    `CREATE INDEX requests_by_opening ON ${schema}.requests (tenant, opened_at, request_id)`,
    `CREATE INDEX requests_by_owner ON ${schema}.requests (tenant, owner_id, opened_at, request_id)
      WHERE owner_id IS NOT NULL`,
    `CREATE INDEX requests_open ON ${schema}.requests (tenant, opened_at, request_id) WHERE status = 'open'`,
    `CREATE INDEX requests_open_by_tree ON ${schema}.requests (tree, agent_id) WHERE status = 'open'`,
    `CREATE INDEX requests_by_key ON ${schema}.requests (tree, md5(decision_key)) WHERE decision_key IS NOT NULL`,
    `CREATE TABLE ${schema}.turns (
      tree bigint NOT NULL, agent_id ${id} NOT NULL, number bigint NOT NULL, turn_id ${id} NOT NULL,
      tenant ${id} NOT NULL, session_id ${id}, owner_id ${id}, turn_key text, hash text,
      status text NOT NULL, stop_reason text, opened_at bigint NOT NULL, changed_at bigint NOT NULL,
      PRIMARY KEY (tree, agent_id, number)
    )`,
    `CREATE INDEX turns_by_key ON ${schema}.turns (tree, md5(turn_key)) WHERE turn_key IS NOT NULL`,
    `CREATE INDEX turns_unfinished ON ${schema}.turns (tenant, changed_at DESC, turn_id) WHERE stop_reason IS NULL`,
    `CREATE INDEX turns_by_change ON ${schema}.turns (tenant, changed_at DESC, turn_id) WHERE stop_reason IS NOT NULL`,
    `CREATE INDEX turns_by_owner ON ${schema}.turns (tenant, owner_id, changed_at DESC, turn_id)
      WHERE owner_id IS NOT NULL AND stop_reason IS NOT NULL`,
    `CREATE INDEX turns_by_session ON ${schema}.turns (tenant, session_id, changed_at DESC, turn_id)
      WHERE session_id IS NOT NULL AND stop_reason IS NOT NULL`,
    `CREATE TABLE ${schema}.steers (
      tree bigint NOT NULL, agent_id ${id} NOT NULL, steer_id ${id} NOT NULL, state text NOT NULL, turn_id ${id} NOT NULL,
      step int, hash text NOT NULL,
      PRIMARY KEY (tree, agent_id, steer_id)
    )`,
    `CREATE TABLE ${schema}.inbox (
      tree bigint NOT NULL, agent_id ${id} NOT NULL, item_key ${id} NOT NULL, n bigint GENERATED ALWAYS AS IDENTITY,
      item text NOT NULL,
      PRIMARY KEY (tree, agent_id, item_key)
    )`,
    `CREATE TABLE ${schema}.timers (
      tree bigint NOT NULL, agent_id ${id} NOT NULL, timer_id ${id} NOT NULL, due_at bigint NOT NULL,
      is_steady boolean NOT NULL, timer text NOT NULL,
      PRIMARY KEY (tree, agent_id, timer_id)
    )`,
    `CREATE INDEX timers_by_due ON ${schema}.timers (due_at)`,
    `CREATE TABLE ${schema}.projections (
      tree bigint NOT NULL, name ${id} NOT NULL, cursor bigint NOT NULL,
      PRIMARY KEY (tree, name)
    )`,
    `CREATE TABLE ${schema}.schedules (
      tree bigint NOT NULL, key ${id} NOT NULL, due_at bigint, agent_id ${id}, owner_id ${id}, schedule text NOT NULL,
      PRIMARY KEY (tree, key)
    )`,
    `CREATE INDEX schedules_by_due ON ${schema}.schedules (tree, due_at, key) WHERE due_at IS NOT NULL`,
    `CREATE INDEX schedules_by_agent ON ${schema}.schedules (tree, agent_id, key) WHERE agent_id IS NOT NULL`,
    `CREATE INDEX schedules_by_owner ON ${schema}.schedules (tree, owner_id, key) WHERE owner_id IS NOT NULL`,
    `CREATE TABLE ${schema}.outer_rows (
      tree bigint NOT NULL, kind text NOT NULL, id ${id} NOT NULL, value text NOT NULL,
      PRIMARY KEY (tree, kind, id)
    )`,
    `CREATE TABLE ${schema}.deletions (
      tree bigint NOT NULL, id_hash ${id} NOT NULL, deleted_at bigint NOT NULL, is_pending boolean NOT NULL,
      deletion text NOT NULL,
      PRIMARY KEY (tree, id_hash)
    )`,
    `CREATE INDEX deletions_by_time ON ${schema}.deletions (tree, deleted_at, id_hash)`,
    `CREATE INDEX deletions_pending ON ${schema}.deletions (tree, deleted_at, id_hash) WHERE is_pending`,
    `CREATE TABLE ${schema}.processes (
      tree bigint NOT NULL, process_id ${id} NOT NULL, n bigint GENERATED ALWAYS AS IDENTITY, process text NOT NULL,
      PRIMARY KEY (tree, process_id)
    )`,
    `CREATE TABLE ${schema}.definitions (
      tree bigint NOT NULL, hash ${id} NOT NULL, definition text NOT NULL,
      PRIMARY KEY (tree, hash)
    )`,
    `CREATE TABLE ${schema}.webhooks (
      tree bigint PRIMARY KEY, tenant ${id} NOT NULL, root ${id} NOT NULL, due_at bigint NOT NULL, webhooks text NOT NULL
    )`,
    `CREATE INDEX webhooks_by_due ON ${schema}.webhooks (tenant, due_at)`,
    ...views(schema),
  ];
}

/** For people. JSON in Postgres refuses NUL, so the views show a replacement character instead. */
function views(schema: string): readonly string[] {
  return [
    `CREATE VIEW ${schema}.team AS
      SELECT tenant, agent_id, parent AS parent_agent_id, session_id, owner_id, created_at,
        ${json("record")} -> 'definition' ->> 'name' AS name, ${json("record")} ->> 'status' AS status,
        ${json("record")} ->> 'openTurnId' AS open_turn_id, record
      FROM ${schema}.agents`,
    `CREATE VIEW ${schema}.conversation AS
      SELECT tenant, agent_id, cursor, ${json("message")} ->> 'role' AS role, ${json("message")} ->> 'content' AS content,
        message
      FROM ${schema}.messages JOIN ${schema}.trees ON trees.id = messages.tree ORDER BY tree, cursor, n`,
    `CREATE VIEW ${schema}.spending AS
      SELECT tenant, ${json("account")} ->> 'agentId' AS agent_id, ${json("account")} ->> 'turnId' AS turn_id,
        ${json("account")} #>> '{used,tokens}' AS tokens, ${json("account")} #>> '{used,costMicros}' AS cost_micros, account
      FROM ${schema}.accounts JOIN ${schema}.trees ON trees.id = accounts.tree`,
    `CREATE VIEW ${schema}.entries AS
      SELECT tenant, agent_id, cursor, (entry ->> 'seq')::bigint AS seq, (entry ->> 'at')::bigint AS at,
        entry ->> 'turnId' AS turn_id, entry ->> 'type' AS type, entry
      FROM ${schema}.journal JOIN ${schema}.trees ON trees.id = journal.tree,
        json_array_elements(${json("entries")}) WITH ORDINALITY AS list (entry, place)
      ORDER BY tree, cursor, place`,
  ];
}

function json(column: string): string {
  return `replace(${column}, '\\u0000', '\\ufffd')::json`;
}

export const firstTables: Migration = { number: 1, troupe: "0.1.0", statements: tables };
