import { jsonRows } from "./001-json-rows.ts";
import type { Migration } from "./migration.ts";

export type { Migration } from "./migration.ts";

/** All steps, in order. A published step is never changed. */
export const migrations: readonly Migration[] = [jsonRows];
