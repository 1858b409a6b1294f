import { type AgentKey, rootOf } from "../../state/index.ts";

/** A write of another process to one tree. */
export interface ForeignWrite {
  readonly tenant: string;
  readonly rootAgentId: string;
  /** Agents whose inbox got an item; `null` if unknown. */
  readonly posted: readonly string[] | null;
  /** Agents whose records changed (the end of a turn changes its agent's record); `null` if unknown. */
  readonly records: readonly string[] | null;
  /** Due time of the first timer that was set, in the timer's own time (wall-clock or steady); `null` if none was set. */
  readonly timerAt: number | null;
}

/** "any": the writes of other processes are unknown. */
export type ForeignWrites = ForeignWriteList | "any";

/** Writes of other processes. A listener checks one agent after the other, so the writes are grouped by tree once, at the first check. */
export class ForeignWriteList {
  /** In the order of arrival. */
  readonly all: readonly ForeignWrite[];
  #byRoot: Map<string, ForeignWrite[]> | undefined;

  constructor(all: readonly ForeignWrite[]) {
    this.all = all;
  }

  /** The writes to one tree. */
  to(rootAgentId: string): readonly ForeignWrite[] {
    this.#byRoot ??= Map.groupBy(this.all, (write) => write.rootAgentId);
    return this.#byRoot.get(rootAgentId) ?? none;
  }
}

const none: readonly ForeignWrite[] = [];

/** Whether the tree of an agent may have changed. */
export function isTreeChanged(writes: ForeignWrites, { tenant, agentId }: AgentKey): boolean {
  if (writes === "any") return true;
  return writes.to(rootOf(agentId)).some((write) => write.tenant === tenant);
}

/** Whether the agent's inbox may have got an item. */
export function isPostedTo(writes: ForeignWrites, key: AgentKey): boolean {
  return isNamed(writes, key, "posted");
}

/** Whether an agent's record may have changed. */
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
