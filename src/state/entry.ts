import { z } from "zod";
import type { DeepReadonly } from "../base/index.ts";
import { agentEntrySchemas, turnEntrySchemas } from "./agent-entries.ts";
import { callEntrySchemas } from "./call-entries.ts";
import { modelEntrySchemas } from "./model-entries.ts";

/**
 * The journal's union. Whatever pure code did not decide is an entry; the fold over the entries is the state.
 * The envelope (`seq`, `at`, `epoch`) is given by the writer; the address (`turnId`, `callId`) says which machines hear it.
 * Facts tell what happened. Intents (`model.requested`, `generate.requested`, `tool.started`, `child.spawned`) tell what
 * is about to be done to the world; the commit grants them or puts `intent.refused` in their place at the same seq.
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
/** What effects hand to the host; the host adds the envelope. */
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

/** The address's parts; absent ones are null. */
export function addressOf(entry: Entry): { turnId: string | null; callId: string | null } {
  return {
    turnId: "turnId" in entry && entry.turnId !== undefined ? entry.turnId : null,
    callId: "callId" in entry && entry.callId !== undefined ? entry.callId : null,
  };
}
