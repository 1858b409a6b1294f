import { type AgentKey, rootOf } from "../../state/index.ts";

/** What other processes wrote to one tree. */
export interface ForeignWrite {
  readonly tenant: string;
  readonly rootAgentId: string;
  /** Whose inboxes got something; null: perhaps anybody's. */
  readonly posted: readonly string[] | null;
  /** Whose records were changed: every turn's end changes its agent's. null: perhaps anybody's. */
  readonly records: readonly string[] | null;
  /** When the first of the timers that were set is due, by whichever clock it is meant; null: none was. */
  readonly timerAt: number | null;
}

/** Writes of other processes; "any" where it is not known to what. */
export type ForeignWrites = readonly ForeignWrite[] | "any";

/** Whether the tree of an agent may have been changed. */
export function isTreeChanged(writes: ForeignWrites, { tenant, agentId }: AgentKey): boolean {
  const root = rootOf(agentId);
  return writes === "any" || writes.some((write) => write.tenant === tenant && write.rootAgentId === root);
}

/** Whether something may have come for an agent. */
export function isPostedTo(writes: ForeignWrites, key: AgentKey): boolean {
  return isNamed(writes, key, "posted");
}

/** Whether an agent's record may have been changed. */
export function isRecordChanged(writes: ForeignWrites, key: AgentKey): boolean {
  return isNamed(writes, key, "records");
}

function isNamed(writes: ForeignWrites, { tenant, agentId }: AgentKey, as: "posted" | "records"): boolean {
  if (writes === "any") return true;
  const root = rootOf(agentId);
  const isAmong = ({ [as]: named }: ForeignWrite): boolean => named === null || named.includes(agentId);
  return writes.some((write) => write.tenant === tenant && write.rootAgentId === root && isAmong(write));
}
