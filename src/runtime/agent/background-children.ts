import type { BackgroundChild, BackgroundChildren } from "../../actors/index.ts";
import { agentAccountId } from "../../budget/index.ts";
import { type AgentKey, type AgentRecord, type AgentRequest, type Entry, turnIdOf } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import { readTurnResult } from "./turn-results.ts";

/** The live parent agent. */
interface BackgroundParent {
  readonly key: AgentKey;
  readonly identity: AgentRecord;
  readonly clock: { now(): number };
  readonly backgroundChildren: readonly { readonly childId: string; readonly name: string }[];
  undelivered(): readonly Entry[];
}

interface BackgroundDependencies {
  readonly stores: Stores;
  /** Notifies agents that have new inbox items. */
  notify(agentIds: readonly string[]): void;
}

const ALL = 10_000;

/**
 * The background children of one live agent. Its own state contains which of them run; everything else is read from the stores.
 */
export function backgroundChildrenOf(
  parent: BackgroundParent,
  dependencies: BackgroundDependencies,
): BackgroundChildren {
  const { key } = parent;
  const { tenant, agentId } = key;
  const childKey = (childId: string): AgentKey => ({ tenant, agentId: childId });
  const records = async (): Promise<AgentRecord[]> => {
    const { rootAgentId } = parent.identity;
    const all = await dependencies.stores.listAgents({ tenant, rootAgentId, limit: ALL });
    return all.filter(({ parentAgentId, background }) => parentAgentId === agentId && background !== undefined);
  };
  const endOf: BackgroundChildren["endOf"] = async (childId) => {
    const result = await readTurnResult(dependencies.stores, tenant, turnIdOf(childId, 1));
    if (!result) return undefined;
    const { status, stopReason, text, error } = result;
    return { outcome: status, stopReason, text: status === "failed" ? (error?.message ?? text) : text };
  };
  return {
    endOf,
    running: () => runningOf(parent),
    async list() {
      const { rootAgentId } = parent.identity;
      const accounts = await dependencies.stores.accounts(tenant, rootAgentId);
      const requests = await dependencies.stores.requests({ tenant, rootAgentId, status: "open", limit: ALL });
      const now = parent.clock.now();
      const children: BackgroundChild[] = [];
      for (const record of await records()) {
        const used = accounts.find(({ id }) => id === agentAccountId(record.agentId))?.used;
        const end = record.openTurnId === null ? await endOf(record.agentId) : undefined;
        const { agentId: childId, definition, createdAt, lastActivity } = record;
        children.push({
          childId,
          name: definition.name,
          state: end?.outcome ?? stateOf(record, requests),
          steps: used?.steps ?? 0,
          tokens: used?.tokens ?? 0,
          costMicros: used?.costMicros ?? 0,
          elapsedMs: Math.max(0, (end ? lastActivity : now) - createdAt),
        });
      }
      return children.toSorted((one, other) => (one.childId < other.childId ? -1 : 1));
    },
    async cancel(childId, reason) {
      const before = await dependencies.stores.readAgent(childKey(childId));
      const command = { turnId: null, by: agentId, reason, stopReason: "user_requested" } as const;
      const outcome = await dependencies.stores.abort(childKey(childId), command, parent.clock.now());
      const posted = outcome.type === "notFound" ? [] : outcome.posted;
      dependencies.notify(posted);
      return posted.length > 0 && (before?.openTurnId !== null || posted.some((id) => id !== childId));
    },
  };
}

function stateOf({ agentId, status, pause }: AgentRecord, requests: readonly AgentRequest[]): BackgroundChild["state"] {
  if (pause || status === "paused") return "paused";
  return requests.some((request) => request.agentId === agentId) ? "waiting" : "running";
}

/** The children without a report, including reports that wait behind an undecided intent. */
function runningOf(parent: BackgroundParent): BackgroundParent["backgroundChildren"] {
  const reported = parent.undelivered().flatMap((entry) => (entry.type === "child.reported" ? [entry.childId] : []));
  return parent.backgroundChildren.filter(({ childId }) => !reported.includes(childId));
}
