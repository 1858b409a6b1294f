import { type AgentRecord, type JournalRow, statusOf } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import { messageSteps } from "./projection-messages.ts";
import type { Projection, ProjectionStep } from "./projection-step.ts";
import type { AgentMetadata, ArtifactStore, Projections, StateStore } from "../doors/projection-stores.ts";

/** `stores`: the durable ones. What is not saved is not copied either. */
export function projectionsOf(
  { messages, artifacts, state }: Projections,
  stores: Stores,
  tenant: string,
): readonly Projection[] {
  const projections: Projection[] = [];
  const add = (kind: string, name: string | undefined, words: string, steps: Projection["steps"]): void => {
    projections.push({ name: name === undefined ? kind : `${kind}/${name}`, words, steps });
  };
  if (messages) {
    add("messages", messages.name, "message store", (rows) => messageSteps(stores, tenant, messages, rows));
  }
  if (artifacts) {
    add("artifacts", artifacts.name, "artifact store", (rows) =>
      oneStep(rows, () => copyArtifacts(stores, tenant, artifacts, rows)),
    );
  }
  if (state) {
    add("state", state.name, "state store", (rows) => oneStep(rows, () => copyStates(stores, tenant, state, rows)));
  }
  return projections;
}

function oneStep(rows: readonly JournalRow[], write: () => Promise<void>): ProjectionStep[] {
  const last = rows.at(-1);
  return last ? [{ through: last.cursor, write }] : [];
}

async function copyArtifacts(
  stores: Stores,
  tenant: string,
  store: ArtifactStore,
  rows: readonly JournalRow[],
): Promise<void> {
  for (const { agentId, entries } of rows) {
    const isCleared = entries.some((entry) => entry.type === "conversation.cleared" && entry.scope === "all");
    if (isCleared) await store.clear?.(agentId);
    for (const entry of entries) {
      if (entry.type !== "artifact.saved") continue;
      const artifact = await stores.artifact({ tenant, agentId }, entry.artifactId);
      if (artifact) await store.save(agentId, artifact);
    }
  }
}

async function copyStates(
  stores: Stores,
  tenant: string,
  store: StateStore,
  rows: readonly JournalRow[],
): Promise<void> {
  for (const agentId of new Set(rows.map((row) => row.agentId))) {
    const record = await stores.readAgent({ tenant, agentId });
    if (record) await store.save(agentId, metadataOf(record));
  }
}

function metadataOf(record: AgentRecord): AgentMetadata {
  const { agentId, createdAt, lastActivity, turnCount, metadata } = record;
  return {
    agentId,
    createdAt: new Date(createdAt).toISOString(),
    lastActivity: new Date(lastActivity).toISOString(),
    turnCount,
    status: statusOf(record),
    ...(Object.keys(metadata).length > 0 ? { metadata } : {}),
  };
}
