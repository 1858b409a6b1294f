import type { Queues } from "../../queues/index.ts";
import { type DeletedTree, type DeletionDependencies, storedDeletions } from "../../runtime/index.ts";
import { DEFAULT_TENANT, type DeletedCounts } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import { formatNumberOf } from "../view/format.ts";

/** Deletes through the store. Owners find posts there; workers are woken. */
export function deletionsIn(stores: Stores, queues: Queues | undefined): DeletionDependencies {
  const notify = (agentIds: readonly string[]): void => {
    for (const agentId of agentIds) queues?.wake({ tenant: DEFAULT_TENANT, agentId }).catch(() => undefined);
  };
  return storedDeletions(stores, DEFAULT_TENANT, { queues, notify });
}

/** One line about a deleted agent. */
export function deletedLine({ agentId, counts, wasDeleted }: DeletedTree): string {
  return wasDeleted ? `${agentId} had been deleted before.` : `Deleted ${agentId}: ${countsText(counts)}.`;
}

export function countsText({ agents, turns, messages, artifacts, requests }: DeletedCounts): string {
  const parts = [
    formatNumberOf(agents, "agent"),
    formatNumberOf(turns, "turn"),
    formatNumberOf(messages, "message"),
    ...(artifacts > 0 ? [formatNumberOf(artifacts, "artifact")] : []),
    ...(requests > 0 ? [formatNumberOf(requests, "request")] : []),
  ];
  return parts.join(", ");
}
