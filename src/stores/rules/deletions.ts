import { faultPoint } from "../../base/index.ts";
import { AgentDeletedError, InvalidInputError } from "../../errors/index.ts";
import { type AgentKey, type Deletion, rootOf } from "../../state/index.ts";
import type { DeleteConditions, DeleteOutcome, PendingDeletion } from "./ports.ts";
import type { Database, StoreTables, Tables } from "./tables.ts";
import { nodeSha256 } from "./tree-chain.ts";

/** The hash under which the deletion of a tree is stored, so that the id of the agent is not. */
export function deletedIdHash(tenant: string, rootAgentId: string): string {
  return nodeSha256(JSON.stringify(["troupe.deletion/1", tenant, rootAgentId]));
}

/** Throws `AgentDeletedError` if the tree of this id was deleted. */
export function assertNotDeleted(tables: Pick<Tables, "deletion">, tenant: string, rootAgentId: string): void {
  const deletion = tables.deletion(tenant, deletedIdHash(tenant, rootAgentId));
  if (deletion) throw deletedError(rootAgentId, deletion);
}

export function deletedError(agentId: string, { deletedAt }: Pick<Deletion, "deletedAt">): AgentDeletedError {
  const at = new Date(deletedAt).toISOString();
  return new AgentDeletedError(`agent "${agentId}" was deleted at ${at}; its id cannot be used again, choose another`, {
    details: { agentId, deletedAt },
  });
}

/** Throws `AgentDeletedError` for a new agent of a tree that was deleted. */
export function assertMayCreate(tables: Tables, { tenant, agentId }: AgentKey): void {
  const root = rootOf(agentId);
  if (agentId === root || tables.agent({ tenant, agentId: root }) === undefined) assertNotDeleted(tables, tenant, root);
}

/**
 * Stores the deletion as pending, then deletes the tree, each in a work of its own, because a store may keep them apart. A work that is
 * refused removes the pending deletion again.
 */
export async function deleteTree(
  database: Database,
  deletion: PendingDeletion,
  conditions: DeleteConditions,
): Promise<DeleteOutcome> {
  const { tables } = database;
  const { tenant, idHash, pending } = checked(deletion);
  const { rootAgentId } = pending;
  const refused = await database.read(() => refusalOf(tables, { tenant, rootAgentId }, conditions));
  if (refused) return refused;
  const known = await database.read(() => tables.deletion(tenant, idHash));
  // One that was begun before may lack agents that the tree has got since.
  if (!known || known.pending) await database.write(() => tables.putDeletion(deletion));
  faultPoint("deletion.begun");
  const outcome = await database.write(() => {
    const found = refusalOf(tables, { tenant, rootAgentId }, conditions);
    if (!found) tables.purgeTree(tenant, rootAgentId);
    return found ?? ({ type: "deleted" } as const);
  });
  const isRefused = outcome.type !== "deleted" && outcome.type !== "absent";
  if (isRefused && !known) await database.write(() => tables.removeDeletion(tenant, idHash));
  return outcome;
}

export async function finishDeletion(database: Database, deletion: PendingDeletion): Promise<void> {
  const { tables } = database;
  const { pending, ...finished } = checked(deletion);
  const { tenant, idHash } = finished;
  const key = { tenant, agentId: pending.rootAgentId };
  const isStored = (await database.read(() => tables.agent(key))) !== undefined;
  await database.write(() => (isStored ? tables.removeDeletion(tenant, idHash) : tables.putDeletion(finished)));
  faultPoint("deletion.finished");
  await database.scrub?.(key);
}

function checked(deletion: PendingDeletion): PendingDeletion {
  const { tenant, idHash, pending } = deletion;
  const { rootAgentId } = pending;
  if (rootOf(rootAgentId) !== rootAgentId) {
    throw new InvalidInputError(
      `agent "${rootAgentId}" belongs to the tree of "${rootOf(rootAgentId)}"; delete that one`,
    );
  }
  if (idHash === deletedIdHash(tenant, rootAgentId)) return deletion;
  throw new InvalidInputError(`the hash ${idHash} is not that of agent "${rootAgentId}"; use deletedIdHash()`);
}

function refusalOf(
  tables: StoreTables,
  { tenant, rootAgentId }: { readonly tenant: string; readonly rootAgentId: string },
  { isAtRest = false, entries, unusedSince }: DeleteConditions,
): DeleteOutcome | undefined {
  const records = tables.agentsOfTree(tenant, rootAgentId);
  if (records.length === 0) return { type: "absent" };
  const open = records.find(({ openTurnId }) => openTurnId !== null);
  if (isAtRest && open && open.openTurnId !== null) {
    return { type: "busy", agentId: open.agentId, openTurnId: open.openTurnId };
  }
  const heads = records.map(({ agentId }) => tables.head({ tenant, agentId }));
  const isUsed = (since: number): boolean =>
    records.some(({ createdAt }) => createdAt >= since) ||
    heads.some(({ at, openRequests }) => at >= since || openRequests > 0);
  if (unusedSince !== undefined && isUsed(unusedSince)) return { type: "used" };
  const stored = heads.reduce((sum, { seq }) => sum + seq, 0);
  return entries !== undefined && entries !== stored ? { type: "changed" } : undefined;
}
