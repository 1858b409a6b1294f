import type { Migration } from "./sqlite-migration.ts";

/** The lines that stay of deleted trees, and an index to find definitions that no tree uses any more. */
const deletions = `
  CREATE TABLE deletions (
    tenant TEXT NOT NULL,
    id_hash TEXT NOT NULL,
    deleted_at INTEGER NOT NULL,
    is_pending INTEGER NOT NULL,
    deletion TEXT NOT NULL,
    PRIMARY KEY (tenant, id_hash)
  ) STRICT, WITHOUT ROWID;
  CREATE INDEX deletions_by_time ON deletions (tenant, deleted_at, id_hash);
  CREATE INDEX deletions_pending ON deletions (tenant, deleted_at, id_hash) WHERE is_pending = 1;
  CREATE INDEX trees_of_definitions ON definitions_of_trees (hash);
`;

export const deletionsOfTrees: Migration = {
  number: 5,
  troupe: "0.1.0",
  apply: (database) => database.exec(deletions),
};
