import { type AgentKey, rootOf } from "../../state/index.ts";

/** A write of another process to one tree. */
export interface ForeignWrite {
  readonly tenant: string;
  readonly rootAgentId: string;
  /** Agents whose inbox got an item; `null` if it may be any agent of the tree. */
  readonly posted: readonly string[] | null;
  /** Agents whose records were changed (the end of a turn changes its agent's record); `null` if it may be any of the tree. */
  readonly records: readonly string[] | null;
  /** When the first of the timers that were set is due, in wall-clock or steady time as the timer is; `null` if none was set. */
  readonly timerAt: number | null;
}

/** "any": the writes of other processes are not known. */
export type ForeignWrites = ForeignWriteList | "any";

/**
 * What other processes have written. A listener asks about one agent after the other, so the writes are sorted by tree
 * once, with the first question.
 */
export class ForeignWriteList {
  /** In the order in which they came. */
  readonly all: readonly ForeignWrite[];
  #byRoot: Map<string, ForeignWrite[]> | undefined;

  constructor(all: readonly ForeignWrite[]) {
    this.all = all;
  }

  /** Those to one tree. */
  to(rootAgentId: string): readonly ForeignWrite[] {
    this.#byRoot ??= Map.groupBy(this.all, (write) => write.rootAgentId);
    return this.#byRoot.get(rootAgentId) ?? none;
  }
}

const none: readonly ForeignWrite[] = [];

/** Whether the tree of an agent may have been changed. */
export function isTreeChanged(writes: ForeignWrites, { tenant, agentId }: AgentKey): boolean {
  if (writes === "any") return true;
  return writes.to(rootOf(agentId)).some((write) => write.tenant === tenant);
}

/** Whether the agent's inbox may have got something. */
export function isPostedTo(writes: ForeignWrites, key: AgentKey): boolean {
  return isNamed(writes, key, "posted");
}

/** Whether an agent's record may have been changed. */
export function isRecordChanged(writes: ForeignWrites, key: AgentKey): boolean {
  return isNamed(writes, key, "records");
}

function isNamed(writes: ForeignWrites, { tenant, agentId }: AgentKey, as: "posted" | "records"): boolean {
  if (writes === "any") return true;
  for (const write of writes.to(rootOf(agentId))) {
    if (write.tenant !== tenant) continue;
    const named = write[as];
    if (named === null || named.includes(agentId)) return true;
  }
  return false;
}
