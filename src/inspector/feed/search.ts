import { type Entry, type JournalRow, type Message, messagesAddedBy, textOf } from "../../state/index.ts";
import type { SearchHit, SearchPage } from "./answers.ts";
import { pauses } from "./pauses.ts";
import { agentKeyIn, type RunSource } from "./source.ts";
import { feedEntryOf, type Visibility, shownMessage } from "./visible-values.ts";

const ROWS_AT_A_TIME = 200;
const MESSAGES_AT_A_TIME = 500;
/** One answer ends after this many hits or milliseconds; its `next` continues the search. */
const MOST_HITS = 50;
const MOST_MS = 300;
const AROUND = 60;

export interface SearchQuery {
  /** The text to find, case-insensitive. */
  readonly text: string;
  /** Continue after this cursor. Default: start at the beginning. */
  readonly after?: number | undefined;
  /** Aborted once the caller no longer needs the answer. */
  readonly signal: AbortSignal;
}

/** Searches the rows of a run and their messages in journal order, case-insensitive. */
export async function searchRun(source: RunSource, query: SearchQuery, sight: Visibility): Promise<SearchPage> {
  const { stores, tenant, runId } = source;
  const { signal } = query;
  const wanted = query.text.toLowerCase();
  let after = query.after ?? 0;
  if (wanted === "") return { hits: [], next: null };
  const hits: SearchHit[] = [];
  const until = performance.now() + MOST_MS;
  const pause = pauses();
  while (!signal.aborted && hits.length < MOST_HITS && performance.now() < until) {
    const rows = await stores.readTree(tenant, runId, after, ROWS_AT_A_TIME);
    const messages = sight.namesOnly ? new Map<string, Message>() : await messagesOf(source, rows);
    for (const row of rows) {
      for (const entry of row.entries) {
        const hit = hitIn(row, entry, { wanted, messages, sight });
        if (hit) hits.push(hit);
        await pause();
      }
      after = row.cursor;
      if (hits.length >= MOST_HITS) break;
    }
    if (rows.length < ROWS_AT_A_TIME && hits.length < MOST_HITS) return { hits, next: null };
  }
  return { hits, next: after };
}

async function messagesOf(source: RunSource, rows: readonly JournalRow[]): Promise<Map<string, Message>> {
  const found = new Map<string, Message>();
  const pause = pauses();
  for (const [agentId, own] of Map.groupBy(rows, (row) => row.agentId)) {
    const ids = own.flatMap(({ entries }) => entries.flatMap(messagesAddedBy));
    for (let from = 0; from < ids.length; from += MESSAGES_AT_A_TIME) {
      const some = await source.stores.messagesById(
        agentKeyIn(source, agentId),
        ids.slice(from, from + MESSAGES_AT_A_TIME),
      );
      // Message ids are unique only within an agent.
      for (const message of some) found.set(`${agentId} ${message.id}`, message);
      await pause();
    }
  }
  return found;
}

interface Wanted {
  readonly wanted: string;
  readonly messages: ReadonlyMap<string, Message>;
  readonly sight: Visibility;
}

/** The hit in the messages that an entry adds, else in the entry itself, which may repeat their text. */
function hitIn(
  { cursor, agentId }: JournalRow,
  entry: Entry,
  { wanted, messages, sight }: Wanted,
): SearchHit | undefined {
  const turnId = "turnId" in entry && entry.turnId !== undefined ? entry.turnId : null;
  const place = { cursor, agentId, seq: entry.seq, turnId, entry: entry.type };
  for (const id of messagesAddedBy(entry)) {
    const message = messages.get(`${agentId} ${id}`);
    const isThere = message !== undefined && has(textsOfMessage(message), wanted);
    const inMessage = isThere ? found(textsOfMessage(shownMessage(message, sight)), wanted) : undefined;
    if (inMessage) return { ...place, messageId: id, ...inMessage };
  }
  const inEntry = has(textsIn(entry), wanted) ? found(textsIn(shownEntry(entry, sight)), wanted) : undefined;
  return inEntry && { ...place, messageId: null, ...inEntry };
}

/** Checked before the text is redacted for the hit, because redacting is many times slower than searching. */
function has(texts: Iterable<string>, wanted: string): boolean {
  for (const text of texts) if (text.toLowerCase().includes(wanted)) return true;
  return false;
}

function shownEntry(entry: Entry, sight: Visibility): unknown {
  return sight.namesOnly ? feedEntryOf(entry, sight) : sight.redactor.value(entry);
}

/** All texts of a value, at any depth. */
function* textsIn(value: unknown): Generator<string> {
  if (typeof value === "string") yield value;
  else if (typeof value === "object" && value !== null) for (const part of Object.values(value)) yield* textsIn(part);
}

function textsOfMessage(message: Message): string[] {
  const calls = message.role === "assistant" ? (message.toolCalls ?? []) : [];
  return [textOf(message.content), ...calls.map((call) => call.arguments)];
}

function found(texts: Iterable<string>, wanted: string): Pick<SearchHit, "before" | "match" | "after"> | undefined {
  for (const text of texts) {
    const at = text.toLowerCase().indexOf(wanted);
    if (at < 0) continue;
    const end = at + wanted.length;
    return {
      before: text.slice(Math.max(0, at - AROUND), at),
      match: text.slice(at, end),
      after: text.slice(end, end + AROUND),
    };
  }
  return undefined;
}
