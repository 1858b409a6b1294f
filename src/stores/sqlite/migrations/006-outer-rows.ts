import type { Migration } from "./sqlite-migration.ts";

/** Accounts above the roots of trees, their reservations and waiting calls: JSON under tenant, kind and id. */
const outerRows = `
  CREATE TABLE outer_rows (
    tenant TEXT NOT NULL,
    kind TEXT NOT NULL,
    id TEXT NOT NULL,
    value TEXT NOT NULL,
    PRIMARY KEY (tenant, kind, id)
  ) STRICT, WITHOUT ROWID;
`;

export const rowsAboveTrees: Migration = {
  number: 6,
  troupe: "0.1.0",
  apply: (database) => database.exec(outerRows),
};
