import { firstTables } from "./001-tables.ts";
import type { Migration } from "./postgres-migration.ts";

export type { Migration } from "./postgres-migration.ts";

/** In order; the last one creates the current layout. */
export const migrations: readonly Migration[] = [firstTables];
