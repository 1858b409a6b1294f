import {
  type AgentRecord,
  type Entry,
  eventsOf,
  type JournalRow,
  parseCursor,
  type TroupeEvent,
  textOf,
} from "../state/index.ts";
import type { Stores } from "../stores/index.ts";

/** Where a tree is kept; a `Runtime` is one. */
export interface JournalSource {
  readonly stores: Stores;
  readonly tenant: string;
}

const ROWS_AT_A_TIME = 200;

/** The durable events of a tree that its journal holds now, in order; up to but not with the event at `before`. */
export async function* eventsInJournal(
  { stores, tenant }: JournalSource,
  rootAgentId: string,
  before?: string,
): AsyncGenerator<TroupeEvent, void, undefined> {
  const sources = new Map<string, AgentRecord>();
  for (let cursor = 0; ; ) {
    const rows = await stores.readTree(tenant, rootAgentId, cursor, ROWS_AT_A_TIME);
    for (const row of rows) {
      const key = { tenant, agentId: row.agentId };
      const source = sources.get(row.agentId) ?? (await stores.readAgent(key));
      if (source) {
        sources.set(row.agentId, source);
        for (const event of await eventsOfRow(stores, row, source)) {
          if (before !== undefined && !isBefore(event, before)) return;
          yield event;
        }
      }
      cursor = row.cursor;
    }
    if (rows.length < ROWS_AT_A_TIME) return;
  }
}

async function eventsOfRow(stores: Stores, row: JournalRow, source: AgentRecord): Promise<TroupeEvent[]> {
  const ids = row.entries.flatMap(textIdsOf);
  const messages = ids.length === 0 ? [] : await stores.messagesById(source, ids);
  const texts = new Map(messages.map(({ id, content }) => [id, textOf(content)]));
  return row.entries.flatMap((entry) => eventsOf(entry, source, row.cursor, (id) => texts.get(id) ?? ""));
}

function textIdsOf(entry: Entry): string[] {
  if (entry.type === "turn.started") return entry.inputMessageIds;
  return entry.type === "turn.ended" && entry.outputMessageId !== null ? [entry.outputMessageId] : [];
}

function isBefore(event: TroupeEvent, cursor: string): boolean {
  const [one, other] = [parseCursor(event.cursor ?? ""), parseCursor(cursor)];
  if (!one || !other) return false;
  return one.row - other.row < 0 || (one.row === other.row && (one.seq - other.seq || one.index - other.index) < 0);
}
