import { z } from "zod";
import { type Account, accountSchema, type Waiter, waiterSchema } from "../../budget/index.ts";
import { CorruptRecordError } from "../../errors/index.ts";
import {
  type AgentRecord,
  agentRecordSchema,
  type AgentRequest,
  agentRequestSchema,
  artifactSchema,
  type Deletion,
  deletionSchema,
  type InboxItem,
  inboxItemSchema,
  JOURNAL_VERSION,
  type JournalRow,
  type Message,
  readEntries,
  type Schedule,
  scheduleSchema,
  type Timer,
  timerSchema,
  type TreeWebhooks,
  treeWebhooksSchema,
  turnRecordSchema,
} from "../../state/index.ts";
import { CorruptTimers, jsonOf, parsed, type StoredOutcome, storedOutcomeSchema } from "../rules/stored-values.ts";
import { outerRowIn } from "../rules/outer-rows.ts";
import type { StoredTurn } from "../rules/ports.ts";
import { processIn } from "../rules/stored-processes.ts";
import {
  type ArtifactMeta,
  freshHead,
  type Head,
  type KeyMeaning,
  type OuterKind,
  type OuterRows,
  type ProcessRow,
} from "../rules/tables.ts";
import { textsOf } from "./redis-connection.ts";
import { fields, pairOf } from "./redis-keys.ts";

/** A row of a tree as last seen. */
export interface SeenRow {
  /** Empty if the row does not exist. */
  readonly version: string;
  readonly text: string | undefined;
  /** The parsed text, after the first access. */
  value?: unknown;
}

export const absentRow: SeenRow = Object.freeze({ version: "", text: undefined });

/** A kind of row: its name in the tree's hash, and how its text is parsed. */
export interface RowKind<T> {
  readonly field: string;
  readonly what: string;
  parse(text: string, where: string): T;
}

/** Splits a stored row like the scripts. Does not check the text: a corrupt row is detected when it is parsed. */
export function seenRow(stored: string): SeenRow {
  let end = 0;
  while (isDigit(stored.charCodeAt(end))) end += 1;
  if (end === 0 || stored[end] !== "|") return { version: "", text: stored };
  return { version: stored.slice(0, end), text: stored.slice(end + 1) };
}

function isDigit(code: number): boolean {
  return code >= 48 && code <= 57;
}

export function valueOf<T>(row: SeenRow, kind: RowKind<T>, key: string): T | undefined {
  if (row.text === undefined) return undefined;
  row.value ??= kind.parse(row.text, `${kind.what} (${kind.field} of ${key})`);
  return row.value as T;
}

const headRowSchema = z.object({
  epoch: z.int(),
  holder: z.string().nullable(),
  seq: z.int(),
  at: z.number(),
  sign: z.number(),
  batchId: z.string().nullable(),
  openRequests: z.int(),
  /** Default `none`. */
  work: z.enum(["open", "parked"]).optional(),
  /** Ids of the open requests. */
  open: z.array(z.string()),
  /** `undefined` for the outcome of most batches. */
  outcome: storedOutcomeSchema.optional(),
});
/** The head and the fields that change together with it. */
export interface HeadRow {
  readonly head: Head;
  readonly open: readonly string[];
  readonly outcome: StoredOutcome | undefined;
}

export const freshHeadRow: HeadRow = { head: freshHead, open: [], outcome: undefined };

export function headText({ head: { work, ...head }, open, outcome }: HeadRow): string {
  return JSON.stringify({ ...head, work: work === "none" ? undefined : work, open, outcome });
}

const meaningSchema = z.union([
  z.object({
    steer: z.enum(["posted", "taken", "deferred"]),
    turnId: z.string(),
    step: z.number().nullable(),
    hash: z.string(),
  }),
  z.object({ turnId: z.string(), hash: z.string() }),
  z.object({ turnId: z.string(), requestId: z.string() }),
]);
const storedTurnSchema = turnRecordSchema.extend({ hash: z.string().nullable() });
const turnChangeSchema = turnRecordSchema.pick({ status: true, stopReason: true, changedAt: true });

/** A turn from its two fields; the second one is absent until the turn has changed. */
export function turnIn(begun: string, changed: string | null | undefined, key: string): StoredTurn {
  const turn = parsed(storedTurnSchema, begun, `a turn (${key})`);
  if (changed === null || changed === undefined) return turn;
  return { ...turn, ...parsed(turnChangeSchema, changed, `turn ${turn.turnId} (${key})`) };
}

export const rowKinds = {
  record: (tenant: string, agentId: string): RowKind<AgentRecord> => ({
    field: fields.record(agentId),
    what: `the record of agent ${agentId}`,
    parse: (text, where) => {
      const record = parsed(agentRecordSchema, text, where);
      if (record.agentId === agentId && record.tenant === tenant) return record;
      throw new CorruptRecordError(`${where} is that of agent ${record.agentId}; it is not changed`);
    },
  }),
  head: (agentId: string): RowKind<HeadRow> => ({
    field: fields.head(agentId),
    what: `the head of agent ${agentId}`,
    parse: (text, where) => {
      const { open, outcome, work = "none", ...head } = parsed(headRowSchema, text, where);
      return { head: { ...head, work }, open, outcome };
    },
  }),
  account: (accountId: string): RowKind<Account> => ({
    field: fields.account(accountId),
    what: `account ${accountId}`,
    parse: (text, where) => {
      const account = parsed(accountSchema, text, where);
      if (account.id === accountId) return account;
      throw new CorruptRecordError(`${where} holds account ${account.id}; it is not changed`);
    },
  }),
  outer: <Kind extends OuterKind>(kind: Kind, id: string): RowKind<OuterRows[Kind]> => ({
    field: fields.outer(kind, id),
    what: `${kind} ${id} above the roots`,
    parse: (text) => outerRowIn(kind, id, text),
  }),
  request: (agentId: string, requestId: string): RowKind<AgentRequest> => ({
    field: fields.request(agentId, requestId),
    what: `request ${requestId}`,
    parse: (text, where) => {
      const request = parsed(agentRequestSchema, text, where);
      if (request.requestId === requestId && request.agentId === agentId) return request;
      throw new CorruptRecordError(`${where} holds request ${request.requestId}; it is not changed`);
    },
  }),
  meaning: (rootAgentId: string, text: string): RowKind<KeyMeaning> => ({
    field: fields.meaning(rootAgentId, text),
    what: `the meaning of key ${text}`,
    parse: (json, where) => parsed(meaningSchema, json, where),
  }),
  process: (processId: string): RowKind<ProcessRow> => ({
    field: fields.process(processId),
    what: `process ${processId}`,
    parse: (text, where) => processIn(text, where, processId),
  }),
  schedule: (key: string): RowKind<Schedule> => ({
    field: fields.schedule(key),
    what: `schedule ${key}`,
    parse: (text, where) => {
      const schedule = parsed(scheduleSchema, text, where);
      if (schedule.key === key) return schedule;
      throw new CorruptRecordError(`${where} is schedule ${schedule.key}; it is not changed`);
    },
  }),
  deletion: (idHash: string): RowKind<Deletion> => ({
    field: fields.deletion(idHash),
    what: `the deletion ${idHash}`,
    parse: (text, where) => parsed(deletionSchema, text, where),
  }),
  timersFrom: {
    field: fields.timersFrom,
    what: "the time of the first timer",
    parse: (text, where) => parsed(z.number(), text, where),
  } satisfies RowKind<number>,
  webhooks: {
    field: fields.webhooks,
    what: "the webhooks of the tree",
    parse: (text, where) => parsed(treeWebhooksSchema, text, where),
  } satisfies RowKind<TreeWebhooks>,
} as const;

const artifactMetaSchema = artifactSchema.omit({ content: true });

export interface PlacedArtifact {
  readonly ordinal: number;
  readonly meta: ArtifactMeta;
}

export interface StoredMessage {
  readonly cursor: number;
  readonly message: Message;
}

/** A journal has no gaps. */
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

const damaged = new CorruptTimers();

/** The due timers, without corrupt ones. */
export function dueTimersIn(texts: readonly string[], key: string): Timer[] {
  return texts.flatMap((text) => (text === "" ? [] : (damaged.skipCorrupt(() => timerIn(text, key)) ?? [])));
}

/** In the order of their first save. */
export function placedArtifacts(texts: readonly string[], key: string): PlacedArtifact[] {
  const where = `an artifact (${key})`;
  return texts
    .map((one) => ordered(one, where))
    .map(({ ordinal, text }) => ({ ordinal, meta: parsed(artifactMetaSchema, text, where) }))
    .sort((a, b) => a.ordinal - b.ordinal);
}

/** The waiters of one account in queue order, from a hash given as names and values. */
export function waitersIn(texts: readonly string[], accountId: string, key: string): Waiter[] {
  const start = pairOf(accountId, "");
  const found: Waiter[] = [];
  for (let at = 0; at < texts.length; at += 2) {
    if (texts[at]?.startsWith(start)) found.push(parsed(waiterSchema, texts[at + 1] ?? "", `the waiters (${key})`));
  }
  return found.sort((a, b) => a.place - b.place);
}

export function ordered(stored: string, where: string): { readonly ordinal: number; readonly text: string } {
  const [start, ordinal] = /^(\d+)\|/.exec(stored) ?? [];
  if (start === undefined) throw new CorruptRecordError(`${where} has no position in its list; it is not changed`);
  return { ordinal: Number(ordinal), text: stored.slice(start.length) };
}

/** Reads a stream entry as Redis returns it: its id, and a list of names and values. */
export function journalRowOf(entry: readonly unknown[], key: string): JournalRow {
  const [id, parts] = entry;
  const place = String(id);
  const texts = textsOf(parts);
  const value = (name: string): string => {
    const at = texts.findIndex((text, index) => index % 2 === 0 && text === name);
    const found = at < 0 ? undefined : texts[at + 1];
    if (found === undefined)
      throw new CorruptRecordError(`row ${cursorOf(place)} of the journal (${key}) lacks ${name}`);
    return found;
  };
  return readRow({ place, agentId: value("agent"), version: value("version"), text: value("entries") }, key);
}

interface StoredRow {
  /** The id of the stream entry. */
  readonly place: string;
  readonly agentId: string;
  readonly version: string;
  readonly text: string;
}

export function readRow({ place, agentId, version, text }: StoredRow, key: string): JournalRow {
  const cursor = cursorOf(place);
  const where = `row ${cursor} of the journal (agent ${agentId}, ${key})`;
  const entries = readEntries(Number(version), jsonOf(text, where), where);
  return { version: JOURNAL_VERSION, cursor, agentId, entries };
}

function cursorOf(place: string): number {
  return Number(place.split("-")[0]);
}

export function itemsIn(texts: readonly string[], key: string): InboxItem[] {
  const where = `the inbox (${key})`;
  return texts
    .map((text) => ordered(text, where))
    .sort((a, b) => a.ordinal - b.ordinal)
    .map(({ text }) => parsed(inboxItemSchema, text, where));
}
