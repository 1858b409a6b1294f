import { eventsOfRow } from "../runtime/index.ts";
import { type AgentRecord, parseCursor, type TroupeEvent } from "../state/index.ts";
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
      for (const event of await eventsOfRow(stores, tenant, row, sources)) {
        if (before !== undefined && !isBefore(event, before)) return;
        yield event;
      }
      cursor = row.cursor;
    }
    if (rows.length < ROWS_AT_A_TIME) return;
  }
}

function isBefore(event: TroupeEvent, cursor: string): boolean {
  const [one, other] = [parseCursor(event.cursor ?? ""), parseCursor(cursor)];
  if (!one || !other) return false;
  return one.row - other.row < 0 || (one.row === other.row && (one.seq - other.seq || one.index - other.index) < 0);
}
