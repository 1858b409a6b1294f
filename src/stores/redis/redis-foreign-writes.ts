import { note, noticeText } from "../rules/published-writes.ts";
import { agentOfRecord } from "./redis-keys.ts";
import type { TreeSession } from "./redis-session.ts";

/**
 * The message that informs other processes of a transaction: the tree, the time of its first timer, the agents whose inbox got an item,
 * and the agents whose records changed. Empty if other processes do not need it.
 */
export function noticeOf({ tree, operations, written, whole }: TreeSession): string {
  // Heartbeats need no message: processes read them on demand.
  if (!tree.tag.includes("/")) return "";
  const prefix = tree.ofAgent("inbox", "").length;
  const posted: string[] = [];
  const records: string[] = [];
  let timerAt: number | null = null;
  let isToTell = written.size > 0;
  for (let at = 0; at < operations.length; at += 1) {
    const operation = operations[at];
    if (operation === undefined) continue;
    const name = operation[0];
    const target = operation[1];
    const key = typeof target === "object" ? target.key : "";
    if (name !== "highest") isToTell = true;
    if (name === "item") note(posted, key.slice(prefix));
    else if (name === "place" && key === tree.due)
      timerAt = Math.min(Number(operation[3]), timerAt ?? Number.POSITIVE_INFINITY);
  }
  if (!isToTell) return "";
  written.forEach((_, field) => {
    const agentId = agentOfRecord(field);
    if (agentId !== undefined) note(records, agentId);
  });
  return noticeText({ tag: tree.tag, timerAt, posted, records: whole ? null : records });
}
