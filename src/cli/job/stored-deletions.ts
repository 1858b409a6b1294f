import { type AgentDefinition, collectDefinitions } from "../../agents/index.ts";
import type { Queues } from "../../queues/index.ts";
import { type DeletedTree, type DeletionDependencies, storedDeletions, unknownKeepers } from "../../runtime/index.ts";
import { DEFAULT_TENANT, type DeletedCounts } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import type { CliContext } from "../cli-context.ts";
import { withMcpTools } from "../mcp/mcp-tools.ts";
import { loadAgentFile } from "./agent-file.ts";
import { formatNumberOf } from "../view/format.ts";

type Definitions = ReadonlyMap<string, AgentDefinition>;

/** The definitions of an agent file with their subagents; none without a file. */
export async function definitionsIn(context: CliContext, path: string | undefined): Promise<Definitions> {
  if (path === undefined) return new Map();
  const { agents } = await withMcpTools(context, await loadAgentFile(path, context.directory), undefined);
  return collectDefinitions(agents);
}

/** Says before a deletion which data of plugins and tools it cannot reach: afterwards the ids of subagents are gone. */
export async function noteUnreachedData(
  context: CliContext,
  stores: Stores,
  { ids, definitions }: { readonly ids: readonly string[]; readonly definitions: Definitions },
): Promise<void> {
  const names = new Set<string>();
  const seen = new Set<string>();
  for (const id of ids) {
    const head = await stores.treeHead(DEFAULT_TENANT, id);
    for (const { name, hash } of head?.agents.map(({ definition }) => definition) ?? []) {
      if (definitions.has(name) || seen.has(hash)) continue;
      seen.add(hash);
      const stored = await stores.definition(DEFAULT_TENANT, id, hash);
      for (const one of unknownKeepers(stored ? [stored] : [], definitions)) names.add(one);
    }
  }
  if (names.size === 0) return;
  context.note(
    `What plugins and tools of ${[...names].toSorted().join(", ")} keep outside of the store, such as memories and logins, stays: name the file that exports the definitions with --agents FILE to delete it too.`,
  );
}

/** Deletes through the store. Owners find posts there; workers are woken. */
export function deletionsIn(
  stores: Stores,
  queues: Queues | undefined,
  definitions: Definitions,
): DeletionDependencies {
  const notify = (agentIds: readonly string[]): void => {
    for (const agentId of agentIds) queues?.wake({ tenant: DEFAULT_TENANT, agentId }).catch(() => undefined);
  };
  return storedDeletions(stores, DEFAULT_TENANT, { queues, notify, definitions });
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
