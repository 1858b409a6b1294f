import { z } from "zod";
import { CorruptRecordError } from "../errors/index.ts";
import type { Json } from "./json.ts";
import type { DeepReadonly } from "../base/index.ts";
import { agentEntrySchemas, turnEntrySchemas } from "./agent-entries.ts";
import { callEntrySchemas } from "./call-entries.ts";
import { modelEntrySchemas } from "./model-entries.ts";

/**
 * The union of journal entries. Everything that pure code does not decide is an entry; the fold over the entries is the state. The writer
 * sets the envelope (`seq`, `at`, `epoch`); the address (`turnId`, `callId`) selects the machines that receive the entry. Facts record
 * past events. Intents (`model.requested`, `generate.requested`, `tool.started`, `child.spawned`) record actions before they are done;
 * the commit grants them or replaces them by `intent.refused` at the same seq.
 */
export const entrySchema = z.discriminatedUnion("type", [
  ...agentEntrySchemas,
  ...turnEntrySchemas,
  ...modelEntrySchemas,
  ...callEntrySchemas,
]);
export type Entry = DeepReadonly<z.infer<typeof entrySchema>>;
export type EntryType = Entry["type"];
export type EntryOf<Type extends EntryType> = Extract<Entry, { type: Type }>;

type WithoutEnvelope<T> = T extends Entry ? Omit<T, "seq" | "at" | "epoch"> : never;
/** An entry as passed by effects to the host, which adds the envelope. */
export type EntryBody = WithoutEnvelope<Entry>;

export const intentTypes = ["model.requested", "generate.requested", "tool.started", "child.spawned"] as const;
export type IntentType = (typeof intentTypes)[number];
export type Intent = EntryOf<IntentType>;
export type IntentBody = WithoutEnvelope<Intent>;
export type Fact = Exclude<Entry, Intent>;
export type FactBody = Exclude<EntryBody, IntentBody>;
export type Refusal = EntryOf<"intent.refused">;

export function isIntent(entry: Entry): entry is Intent {
  return (intentTypes as readonly string[]).includes(entry.type);
}

/** The fields of an entry's address; `null` if absent. */
export function addressOf(entry: Entry): { turnId: string | null; callId: string | null } {
  return {
    turnId: "turnId" in entry && entry.turnId !== undefined ? entry.turnId : null,
    callId: "callId" in entry && entry.callId !== undefined ? entry.callId : null,
  };
}

/** The version of new entries. Older ones are upcast on reading, newer ones refused. */
export const JOURNAL_VERSION = 1;

/** The stored entries of one commit. */
export interface JournalRow {
  readonly version: number;
  /** Position among all commits of the tree; clients continue from it. */
  readonly cursor: number;
  readonly agentId: string;
  readonly entries: readonly Entry[];
}

/** Converts the entries of one version to those of the next. */
export type Upcaster = (entries: readonly Json[]) => readonly Json[];

/** By the version that they read; version N's upcaster returns version N + 1. Empty until a second version exists. */
export const upcasters: ReadonlyMap<number, Upcaster> = new Map();

const entriesSchema = z.array(entrySchema);

/**
 * Reads stored entries of any supported version. Throws `CorruptRecordError` if they do not fit the schema or have an unknown version;
 * the record is not changed.
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
      throw new CorruptRecordError(`${where}: journal version ${from} cannot be converted to ${from + 1}`);
    }
    entries = step(entries as Json[]);
  }
  const parsed = entriesSchema.safeParse(entries);
  if (parsed.success) return parsed.data;
  throw new CorruptRecordError(
    `${where}: the stored entries do not fit the journal's schema: ${parsed.error.issues[0]?.message} at ${parsed.error.issues[0]?.path.join(".")}`,
  );
}
