import {
  type AgentRecord,
  type Entry,
  eventsOf,
  type JournalRow,
  type TroupeEvent,
  textOf,
} from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";

/**
 * The durable events of one stored row, as those who listened live had them. `sources` keeps the records that were read,
 * for the rows that follow.
 */
export async function eventsOfRow(
  stores: Stores,
  tenant: string,
  row: JournalRow,
  sources: Map<string, AgentRecord>,
): Promise<TroupeEvent[]> {
  const key = { tenant, agentId: row.agentId };
  const source = sources.get(row.agentId) ?? (await stores.readAgent(key));
  if (!source) return [];
  sources.set(row.agentId, source);
  const ids = row.entries.flatMap(textIdsOf);
  const messages = ids.length === 0 ? [] : await stores.messagesById(key, ids);
  const texts = new Map(messages.map(({ id, content }) => [id, textOf(content)]));
  return row.entries.flatMap((entry) => eventsOf(entry, source, row.cursor, (id) => texts.get(id) ?? ""));
}

function textIdsOf(entry: Entry): readonly string[] {
  if (entry.type === "turn.started") return entry.inputMessageIds;
  return entry.type === "turn.ended" && entry.outputMessageId !== null ? [entry.outputMessageId] : [];
}
