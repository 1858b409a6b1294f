import { z } from "zod";
import { CorruptRecordError } from "../errors/index.ts";
import { type Entry, entrySchema } from "./entry.ts";
import type { Json } from "./json.ts";

/** The version that is written now. Older ones are upcast on reading, newer ones refused. */
export const JOURNAL_VERSION = 1;

/** One commit's entries as they are stored. */
export interface JournalRow {
  readonly version: number;
  /** Place in the order of all commits of the tree; what a client continues from. */
  readonly cursor: number;
  readonly agentId: string;
  readonly entries: readonly Entry[];
}

/** Turns the entries of one version into those of the next. */
export type Upcaster = (entries: readonly Json[]) => readonly Json[];

/** Keyed by the version they read; version N's upcaster gives N + 1. Empty until a second version exists. */
export const upcasters: ReadonlyMap<number, Upcaster> = new Map();

const entriesSchema = z.array(entrySchema);

/**
 * Reads stored entries of any known version. Throws `CorruptRecordError` (the record is left as it is) when they do not
 * fit the schema, or come from a version this package does not know.
 */
export function readEntries(
  version: number,
  stored: unknown,
  where: string,
  steps: ReadonlyMap<number, Upcaster> = upcasters,
  current: number = JOURNAL_VERSION,
): Entry[] {
  if (!Number.isInteger(version) || version < 1 || version > current) {
    throw new CorruptRecordError(`${where}: journal version ${version} is unknown; this package reads 1 to ${current}`);
  }
  let entries: unknown = stored;
  for (let from = version; from < current; from += 1) {
    const step = steps.get(from);
    if (!step || !Array.isArray(entries)) {
      throw new CorruptRecordError(`${where}: there is no way from journal version ${from} to ${from + 1}`);
    }
    entries = step(entries as Json[]);
  }
  const parsed = entriesSchema.safeParse(entries);
  if (parsed.success) return parsed.data;
  throw new CorruptRecordError(
    `${where}: the stored entries do not fit the journal's schema: ${parsed.error.issues[0]?.message} at ${parsed.error.issues[0]?.path.join(".")}`,
  );
}
