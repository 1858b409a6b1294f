import { AgentBusyError, NotFoundError } from "../../errors/index.ts";
import type { AgentRecord } from "../../state/index.ts";
import { formatAgentCursor, type Stores } from "../../stores/index.ts";
import type {
  DeletedTree,
  DeleteOptions,
  DeleteOwnerOptions,
  DeletionReport,
  OwnerDeletionReport,
} from "../api/deletion-types.ts";
import {
  assertRoot,
  deleteTree,
  type DeletionDependencies,
  type FailedDeletion,
  finishDeletions,
  type HowToDelete,
} from "./delete-tree.ts";
import { forgetData } from "./personal-data.ts";

const PAGE = 200;

/** `runtime.delete()`: one tree and, if asked for, its forks. */
export async function deleteAgent(
  dependencies: DeletionDependencies,
  agentId: string,
  { forks = false, by = "user", abort, timeoutMs, ownerId }: DeleteOptions & Pick<HowToDelete, "ownerId">,
): Promise<DeletionReport> {
  assertRoot(agentId);
  const how: HowToDelete = { by, reason: "request", abort, timeoutMs, ownerId };
  const origins = new Set([agentId]);
  const found = await forksOf(dependencies, origins);
  const trees: DeletedTree[] = [];
  const deleteOne = async (id: string): Promise<void> => {
    const deleted = await deleteTree(dependencies, id, how);
    if (deleted) trees.push(deleted);
  };
  await deleteOne(agentId);
  if (forks) for (const id of found) await deleteOne(id);
  return { trees, forks: forks ? [] : found, copiesLeft: dependencies.copies?.undeletable ?? [] };
}

/**
 * `runtime.deleteOwner()`: all trees of an owner. One that cannot be deleted does not stop the others. After a kill, the next call goes on:
 * it finishes what was begun, and finds the remaining trees by their owner. Rejects with `StoreUnavailableError` if a plugin or tool could
 * not forget the owner.
 */
export async function deleteOwner(
  dependencies: DeletionDependencies,
  ownerId: string,
  { by = "user", abort, timeoutMs }: DeleteOwnerOptions,
  onDeleted?: (tree: DeletedTree) => void,
): Promise<OwnerDeletionReport> {
  const { stores, tenant, clock } = dependencies;
  // First, so that none opens a new agent of this owner meanwhile.
  await stores.removeSchedules({ tenant, ownerId });
  const trees: DeletedTree[] = [];
  const failed: FailedDeletion[] = [];
  const origins = new Set<string>();
  // Again as long as there are new ones: a process may have read a schedule before it was removed, and then have created its agent.
  for (let known = -1; known < origins.size; ) {
    known = origins.size;
    for await (const { agentId } of rootsOf(dependencies, { ownerId })) {
      if (origins.has(agentId)) continue;
      origins.add(agentId);
      try {
        const how: HowToDelete = { by, reason: "request", abort, timeoutMs, ownerId };
        const deleted = await deleteTree(dependencies, agentId, how);
        if (!deleted) continue;
        trees.push(deleted);
        onDeleted?.(deleted);
      } catch (error) {
        // Another process was faster.
        if (!(error instanceof NotFoundError)) failed.push({ agentId, error });
      }
    }
  }
  const others = await finishDeletions(dependencies);
  for (const one of others) if (!failed.some(({ agentId }) => agentId === one.agentId)) failed.push(one);
  // Also after failures, and for an owner without trees.
  await forgetData(dependencies, [{ tenant, scope: "owner", id: ownerId }]);
  // The accounts above the roots have the owner's id. Where a call still counts on them, the next deletion removes them.
  // At steady time 0 the agents that this wakes count as woken long ago, so no room is kept for them.
  if (failed.length === 0) await stores.outer.forget(tenant, ownerId, { now: clock.now(), steady: 0 });
  const forks = origins.size === 0 ? [] : await forksOf(dependencies, origins);
  return { trees, forks, failed, copiesLeft: dependencies.copies?.undeletable ?? [] };
}

export interface PruneOptions {
  /** Trees that were not used since this time are deleted, in milliseconds since the epoch. */
  readonly unusedSince: number;
  readonly by: string;
  readonly keepCopies?: boolean | undefined;
  /** Continues after this root (`formatAgentCursor`). Default: the newest that is old enough. */
  readonly after?: string | undefined;
  /** How many roots to look at. Default: all. */
  readonly limit?: number | undefined;
  /** Only lists them. Default false. */
  readonly isDryRun?: boolean | undefined;
  /** Called before each root; `true` ends the pass. Default: never. */
  readonly isOver?: (() => boolean) | undefined;
  /** Called with each tree that is deleted or, in a dry run, would be. */
  readonly onTree?: ((agentId: string, deleted: DeletedTree | undefined) => void) | undefined;
}

/**
 * Deletes trees that were not used since a time. Trees with an open turn, an open request or a schedule that goes on are left. Resolves with the position after
 * the last root that it has looked at; `undefined` at the end of the list.
 */
export async function pruneTrees(
  dependencies: DeletionDependencies,
  options: PruneOptions,
): Promise<string | undefined> {
  const { unusedSince, by, keepCopies, limit = Number.POSITIVE_INFINITY, isDryRun = false, onTree } = options;
  const after = options.after ?? formatAgentCursor({ createdAt: unusedSince, agentId: "\u{10FFFF}" });
  let looked = 0;
  for await (const record of rootsOf(dependencies, { after })) {
    const { agentId } = record;
    if (options.isOver?.() === true) return undefined;
    if (await isUnused(dependencies, agentId, options)) {
      const how: HowToDelete = { by, reason: "retention", unusedSince, keepCopies };
      const deleted = isDryRun ? undefined : await deletedUnlessUsed(dependencies, agentId, how);
      if (isDryRun || deleted) onTree?.(agentId, deleted);
    }
    looked += 1;
    if (looked >= limit) return formatAgentCursor(record);
  }
  return undefined;
}

async function deletedUnlessUsed(
  dependencies: DeletionDependencies,
  agentId: string,
  how: HowToDelete,
): Promise<DeletedTree | undefined> {
  try {
    const deleted = await deleteTree(dependencies, agentId, how);
    return deleted?.wasDeleted === true ? undefined : deleted;
  } catch (error) {
    // It has been used or deleted in the meantime.
    if (error instanceof AgentBusyError || error instanceof NotFoundError) return undefined;
    throw error;
  }
}

/** A first look, without reading the tree; the store decides again when it deletes. */
async function isUnused(
  { stores, tenant, copies }: DeletionDependencies,
  rootAgentId: string,
  { unusedSince: since, keepCopies = false }: PruneOptions,
): Promise<boolean> {
  const head = await stores.treeHead(tenant, rootAgentId);
  if (!head || head.openRequests.length > 0) return false;
  if (!head.agents.every(({ openTurnId, lastActivity }) => openTurnId === null && lastActivity < since)) return false;
  const schedules = await stores.schedules({ tenant, agentId: rootAgentId });
  if (schedules.some(({ nextAt }) => nextAt !== null)) return false;
  return !keepCopies || copies === undefined || (await copies.isCopied(rootAgentId, head.cursor));
}

/** The trees that were forked from these or, through other forks, contain a copy of them. */
async function forksOf(dependencies: DeletionDependencies, origins: ReadonlySet<string>): Promise<readonly string[]> {
  const forks: { readonly agentId: string; readonly from: readonly (string | undefined)[] }[] = [];
  for await (const { agentId, forkedFrom } of rootsOf(dependencies, {})) {
    if (forkedFrom && !origins.has(agentId))
      forks.push({ agentId, from: [forkedFrom.agentId, forkedFrom.firstAgentId] });
  }
  const found = new Set<string>();
  const isCopy = (id: string | undefined): boolean => id !== undefined && (origins.has(id) || found.has(id));
  // A fork of a fork may be listed before its origin.
  for (let before = -1; before < found.size; ) {
    before = found.size;
    for (const { agentId, from } of forks) if (from.some(isCopy)) found.add(agentId);
  }
  return [...found];
}

/** Root agents, newest first; of an owner by id. Reads pages only as the caller iterates. */
export async function* rootsOf(
  { stores, tenant }: { readonly stores: Stores; readonly tenant: string },
  { ownerId, after: start }: { readonly ownerId?: string; readonly after?: string },
): AsyncGenerator<AgentRecord> {
  const isNewest = ownerId === undefined;
  for (let after = start; ; ) {
    const order = isNewest ? "newest" : "id";
    const page = await stores.listAgents({ tenant, ownerId, rootsOnly: true, order, limit: PAGE, after });
    yield* page;
    const last = page.at(-1);
    if (last === undefined || page.length < PAGE) return;
    after = isNewest ? formatAgentCursor(last) : last.agentId;
  }
}
