import { InvalidInputError } from "../../errors/index.ts";
import type { AgentRecord, Message } from "../../state/index.ts";
import type { FeedMessageItem, MessagePage, PromptRow } from "./answers.ts";
import type { KeptJournal, PlacedEntry } from "./journals.ts";
import { agentOf, agentKeyIn, type RunSource } from "./source.ts";
import { type Visibility, shownMessage } from "./visible-values.ts";

export interface AgentJournal {
  readonly record: AgentRecord;
  readonly journal: KeptJournal;
}

/** The journal of one agent. Throws `NotFoundError` for an agent that is not of the run. */
export async function journalOf(source: RunSource, agentId: string): Promise<AgentJournal> {
  const record = await agentOf(source, agentId);
  return { record, journal: await source.journals.read(source.stores, agentKeyIn(source, agentId)) };
}

/** Characters of one message that a list of messages holds; the row has the rest. */
const LONGEST_MESSAGE = 200_000;
const MESSAGES_AT_A_TIME = 50;

export interface MessageQuery {
  /** Only what was known by this cursor. */
  readonly at?: number | undefined;
  /** `next` of the page behind this one. */
  readonly before?: string | undefined;
  /** Most messages of the page, 1 to 200. Default 50. */
  readonly limit?: number | undefined;
}

/** A page of an agent's conversation, oldest first; the first page has the newest messages. */
export async function messagePage(
  source: RunSource,
  agentId: string,
  { at, before, limit = MESSAGES_AT_A_TIME }: MessageQuery,
  sight: Visibility,
): Promise<MessagePage> {
  const { journal } = await journalOf(source, agentId);
  const ids = journal.messageIds;
  const known = at === undefined ? ids.length : ids.findLastIndex((id) => cursorOf(journal, id) <= at) + 1;
  const end = before === undefined ? known : ids.indexOf(before);
  if (end < 0) throw new InvalidInputError(`invalid before "${before}"; expected "next" of another page`);
  const start = Math.max(0, end - limit);
  const messages = await source.stores.messagesById(agentKeyIn(source, agentId), ids.slice(start, end));
  return {
    items: messages.map((message) => shownItem(journal, message, sight)),
    next: start === 0 ? null : (ids[start] ?? null),
  };
}

function cursorOf(journal: KeptJournal, messageId: string): number {
  return journal.entryOf(messageId)?.cursor ?? 0;
}

/** All messages of an agent's conversation, oldest first. */
export async function allMessages(
  source: RunSource,
  { record, journal }: AgentJournal,
  sight: Visibility,
): Promise<FeedMessageItem[]> {
  const all = await source.stores.messages(agentKeyIn(source, record.agentId));
  return all.map((message) => shownItem(journal, message, sight));
}

function shownItem(journal: KeptJournal, given: Message, sight: Visibility): FeedMessageItem {
  const { message, isCut } = cutMessage(shownMessage(given, sight));
  const { cursor = null, entry } = journal.entryOf(given.id) ?? {};
  const turnId = entry && "turnId" in entry ? (entry.turnId ?? null) : null;
  const step = entry && "step" in entry ? entry.step : null;
  return { message, cursor, seq: entry?.seq ?? null, turnId, step, isCut };
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
