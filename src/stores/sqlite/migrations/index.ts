import { firstTables } from "./001-tables.ts";
import { ordersOfRows } from "./002-orders.ts";
import { steersOfAgents } from "./003-steers.ts";
import { schedulesTable } from "./004-schedules.ts";
import { deletionsOfTrees } from "./005-deletions.ts";
import { rowsAboveTrees } from "./006-outer-rows.ts";
import type { Migration } from "./sqlite-migration.ts";

export type { Migration } from "./sqlite-migration.ts";

/** In order; the last one creates the current layout. */
export const migrations: readonly Migration[] = [
  firstTables,
  ordersOfRows,
  steersOfAgents,
  schedulesTable,
  deletionsOfTrees,
  rowsAboveTrees,
];
