import { InvalidInputError } from "../../errors/index.ts";
import { type AgentRecord, type Entry, type JournalRow, type Message, messagesAddedBy } from "../../state/index.ts";
import type { FeedMessageItem, MessagePage, PromptRow } from "./answers.ts";
import { agentOf, keyOf, type RunSource } from "./source.ts";
import { type Sight, shownMessage } from "./visible-values.ts";

/** One entry of an agent with the cursor of its row. */
export interface PlacedEntry {
  readonly cursor: number;
  readonly entry: Entry;
}

export interface AgentJournal {
  readonly record: AgentRecord;
  readonly rows: readonly JournalRow[];
  readonly entries: readonly PlacedEntry[];
}

/** All entries of one agent, up to a cursor. Throws `NotFoundError` for an agent that is not of the run. */
export async function journalOf(source: RunSource, agentId: string, at: number | null = null): Promise<AgentJournal> {
  const record = await agentOf(source, agentId);
  const all = await source.journals.read(source.stores, keyOf(source, agentId));
  const rows = at === null ? all : all.filter(({ cursor }) => cursor <= at);
  return { record, rows, entries: rows.flatMap(({ cursor, entries }) => entries.map((entry) => ({ cursor, entry }))) };
}

/** Characters of one message that a list of messages holds; the row has the rest. */
const LONGEST_MESSAGE = 200_000;
const MESSAGES_AT_A_TIME = 50;

export interface MessageQuery {
  /** Only what was known by this cursor. */
  readonly at?: number | undefined;
  /** `next` of the page behind this one. */
  readonly before?: string | undefined;
  readonly limit?: number | undefined;
}

/** A page of an agent's conversation, oldest first; the first page has the newest messages. */
export async function messagePage(
  source: RunSource,
  agentId: string,
  { at, before, limit = MESSAGES_AT_A_TIME }: MessageQuery,
  sight: Sight,
): Promise<MessagePage> {
  const { entries } = await journalOf(source, agentId, at ?? null);
  const all = await source.stores.messages(keyOf(source, agentId));
  const items = placed(all, entries);
  // A message without an entry belongs to the row of the one before it.
  const known = at === undefined ? items : items.filter(({ item }) => item.cursor !== null);
  const end = before === undefined ? known.length : known.findIndex(({ id }) => id === before);
  if (end < 0) throw new InvalidInputError(`before is "${before}"; it takes "next" of another page`);
  const start = Math.max(0, end - limit);
  return {
    items: known.slice(start, end).map(({ item }) => shownItem(item, sight)),
    next: start === 0 ? null : (known[start]?.id ?? null),
  };
}

/** All messages of an agent's conversation, oldest first. */
export async function allMessages(
  source: RunSource,
  { record, entries }: AgentJournal,
  sight: Sight,
): Promise<FeedMessageItem[]> {
  const all = await source.stores.messages(keyOf(source, record.agentId));
  return placed(all, entries).map(({ item }) => shownItem(item, sight));
}

interface Placed {
  readonly id: string;
  readonly item: Omit<FeedMessageItem, "isCut">;
}

function placed(messages: readonly Message[], entries: readonly PlacedEntry[]): Placed[] {
  const places = new Map<string, Omit<FeedMessageItem, "isCut" | "message">>();
  for (const { cursor, entry } of entries) {
    const place = {
      cursor,
      seq: entry.seq,
      turnId: "turnId" in entry && entry.turnId !== undefined ? entry.turnId : null,
      step: "step" in entry ? entry.step : null,
    };
    for (const id of messagesAddedBy(entry)) if (!places.has(id)) places.set(id, place);
  }
  const nowhere = { cursor: null, seq: null, turnId: null, step: null };
  return messages.map((message) => ({ id: message.id, item: { message, ...(places.get(message.id) ?? nowhere) } }));
}

function shownItem(item: Placed["item"], sight: Sight): FeedMessageItem {
  const { message, isCut } = cutMessage(shownMessage(item.message, sight));
  return { ...item, message, isCut };
}

function cutMessage(message: Message): { readonly message: Message; readonly isCut: boolean } {
  const { content } = message;
  if (typeof content !== "string" || content.length <= LONGEST_MESSAGE) return { message, isCut: false };
  return { message: { ...message, content: content.slice(0, LONGEST_MESSAGE) }, isCut: true };
}

/** The model calls of an agent, one row for each attempt. */
export function promptRowsOf(entries: readonly PlacedEntry[]): PromptRow[] {
  const rows: PromptRow[] = [];
  for (const { cursor, entry } of entries) {
    if (entry.type === "model.requested") {
      const { seq, at, turnId, step, attempt, model, promptHash, last } = entry;
      const asked = { seq, cursor, at, turnId, step, attempt, model, promptHash, isLast: last !== undefined };
      const unknown = { usage: null, costMicros: null, durationMs: null, finishReason: null };
      rows.push({ ...asked, outcome: "open", ...unknown });
      continue;
    }
    const open = rows.at(-1);
    if (open?.outcome !== "open") continue;
    if (entry.type === "model.responded") {
      const { model, usage, costMicros, durationMs, finishReason } = entry;
      rows[rows.length - 1] = { ...open, outcome: "answered", model, usage, costMicros, durationMs, finishReason };
    } else if (entry.type === "model.failed") {
      rows[rows.length - 1] = {
        ...open,
        outcome: "failed",
        usage: entry.usage,
        costMicros: entry.settlement?.costMicros ?? null,
        durationMs: entry.at - open.at,
      };
    }
  }
  return rows;
}
