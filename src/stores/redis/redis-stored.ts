import { type Waiter, waiterSchema } from "../../budget/index.ts";
import { CorruptRecordError } from "../../errors/index.ts";
import {
  artifactSchema,
  JOURNAL_VERSION,
  type JournalRow,
  type Message,
  readEntries,
  type Timer,
  timerSchema,
} from "../../state/index.ts";
import { pairOf } from "./redis-keys.ts";
import { textsOf } from "./redis-replies.ts";
import { jsonOf, parsed } from "../rules/stored-json.ts";
import type { ArtifactMeta } from "../rules/tables.ts";
import { DamagedTimers } from "../rules/damaged-timers.ts";

const artifactMetaSchema = artifactSchema.omit({ content: true });

export interface PlacedArtifact {
  readonly ordinal: number;
  readonly meta: ArtifactMeta;
}

export interface StoredMessage {
  readonly cursor: number;
  readonly message: Message;
}

/** A journal has no gap. */
export function checkOrder(
  before: JournalRow | undefined,
  { cursor, agentId, entries }: JournalRow,
  key: string,
): void {
  const last = before?.entries.at(-1)?.seq;
  if (last === undefined || entries[0]?.seq === last + 1) return;
  throw new CorruptRecordError(`row ${cursor} of the journal (agent ${agentId}, ${key}) does not follow entry ${last}`);
}

export function timerIn(text: string, key: string): Timer {
  return parsed(timerSchema, text, `a timer (${key})`);
}

const damaged = new DamagedTimers();

/** Those that can be read, of those that are due. */
export function dueTimersIn(texts: readonly string[], key: string): Timer[] {
  return texts.flatMap((text) => (text === "" ? [] : (damaged.passedOver(() => timerIn(text, key)) ?? [])));
}

/** In the order in which they were saved first. */
export function placedArtifacts(texts: readonly string[], key: string): PlacedArtifact[] {
  const where = `an artifact (${key})`;
  return texts
    .map((one) => ordered(one, where))
    .map(({ ordinal, text }) => ({ ordinal, meta: parsed(artifactMetaSchema, text, where) }))
    .sort((a, b) => a.ordinal - b.ordinal);
}

/** Of a hash of those who wait, as names and values, the ones that wait on an account, in the order of their places. */
export function waitersIn(texts: readonly string[], accountId: string, key: string): Waiter[] {
  const start = pairOf(accountId, "");
  const found: Waiter[] = [];
  for (let at = 0; at < texts.length; at += 2) {
    if (texts[at]?.startsWith(start)) found.push(parsed(waiterSchema, texts[at + 1] ?? "", `the line (${key})`));
  }
  return found.sort((a, b) => a.place - b.place);
}

export function ordered(stored: string, where: string): { readonly ordinal: number; readonly text: string } {
  const [start, ordinal] = /^(\d+)\|/.exec(stored) ?? [];
  if (start === undefined) throw new CorruptRecordError(`${where} has no place in its order; it is left as it is`);
  return { ordinal: Number(ordinal), text: stored.slice(start.length) };
}

/** An entry of a stream, as Redis gives it: its id, and a list of names and values. */
export function journalRowOf(entry: readonly unknown[], key: string): JournalRow {
  const [id, parts] = entry;
  const cursor = Number(String(id).split("-")[0]);
  const texts = textsOf(parts);
  const value = (name: string): string => {
    const at = texts.findIndex((text, index) => index % 2 === 0 && text === name);
    const found = at < 0 ? undefined : texts[at + 1];
    if (found === undefined) throw new CorruptRecordError(`row ${cursor} of the journal (${key}) lacks ${name}`);
    return found;
  };
  const agentId = value("a");
  const where = `row ${cursor} of the journal (agent ${agentId}, ${key})`;
  const entries = readEntries(Number(value("v")), jsonOf(value("e"), where), where);
  return { version: JOURNAL_VERSION, cursor, agentId, entries };
}
