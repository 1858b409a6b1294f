import type { Migration } from "./sqlite-migration.ts";

/** Schedules by key. `due_at` is null while a schedule is paused and when it has no time left. */
const tables = `
  CREATE TABLE schedules (
    tenant TEXT NOT NULL,
    key TEXT NOT NULL,
    due_at INTEGER,
    agent_id TEXT,
    owner_id TEXT,
    schedule TEXT NOT NULL,
    PRIMARY KEY (tenant, key)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX schedules_by_due ON schedules (tenant, due_at, key) WHERE due_at IS NOT NULL;
  CREATE INDEX schedules_by_agent ON schedules (tenant, agent_id, key) WHERE agent_id IS NOT NULL;
  CREATE INDEX schedules_by_owner ON schedules (tenant, owner_id, key) WHERE owner_id IS NOT NULL;
`;

export const schedulesTable: Migration = {
  number: 4,
  troupe: "0.1.0",
  apply: (database) => database.exec(tables),
};
