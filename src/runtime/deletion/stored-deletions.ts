import { systemClock } from "../../base/index.ts";
import { isTreeChanged, type Stores } from "../../stores/index.ts";
import type { DeletionDependencies } from "./delete-tree.ts";

/** Deletes through the stores, in a process that runs no agents: a process that runs an agent loses it. */
export function storedDeletions(
  stores: Stores,
  tenant: string,
  more: Pick<DeletionDependencies, "notify"> & Partial<Pick<DeletionDependencies, "queues" | "definitions">>,
): DeletionDependencies {
  return {
    stores,
    tenant,
    clock: systemClock,
    definitions: new Map(),
    ...more,
    forget: (rootAgentId) => stores.dropTree?.({ tenant, agentId: rootAgentId }),
    onChange: (rootAgentId, listener) =>
      stores.onForeignWrite((writes) =>
        isTreeChanged(writes, { tenant, agentId: rootAgentId }) ? listener() : undefined,
      ),
  };
}
