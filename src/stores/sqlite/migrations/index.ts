import { firstTables } from "./001-tables.ts";
import { ordersOfRows } from "./002-orders.ts";
import type { Migration } from "./sqlite-migration.ts";

export type { Migration } from "./sqlite-migration.ts";

/** In their order; the last one makes the present layout. */
export const migrations: readonly Migration[] = [firstTables, ordersOfRows];
