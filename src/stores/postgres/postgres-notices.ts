import { note, noticeText } from "../rules/published-writes.ts";
import type { WriteSession } from "./postgres-session.ts";
import { textOfColumn } from "./postgres-text.ts";

/** Longest text of a notification, in bytes; Postgres refuses 8,000. The sender's id comes before it. */
const LONGEST_NOTICE = 7_900;

/**
 * The message that informs other processes of a write: the tree, the time of its first timer, the agents whose inbox got an item, and the
 * agents whose records changed. `undefined` if other processes do not need it.
 */
export function noticeOf({ tree, changes, isRemoved }: WriteSession): string | undefined {
  // Rows beside the trees, such as heartbeats, need no message: processes read them on demand.
  if (tree.beside !== undefined) return undefined;
  if (!isRemoved && [...changes.keys()].every((table) => table === "projections")) return undefined;
  const posted: string[] = [];
  const records: string[] = [];
  let timerAt: number | null = null;
  for (const { key, values } of changes.get("inbox")?.values() ?? []) {
    if (values !== null) note(posted, textOfColumn(String(key[0])));
  }
  for (const { key } of changes.get("agents")?.values() ?? []) note(records, textOfColumn(String(key[0])));
  for (const { values } of changes.get("timers")?.values() ?? []) {
    if (values !== null) timerAt = Math.min(Number(values[0]), timerAt ?? Number.POSITIVE_INFINITY);
  }
  const named = noticeText({ tag: tree.tag, timerAt, posted, records: isRemoved ? null : records });
  if (Buffer.byteLength(named) <= LONGEST_NOTICE) return named;
  const unnamed = noticeText({ tag: tree.tag, timerAt, posted: null, records: null });
  return Buffer.byteLength(unnamed) <= LONGEST_NOTICE ? unnamed : "null";
}
