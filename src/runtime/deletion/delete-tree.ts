import { setImmediate } from "node:timers/promises";
import { type Clock, faultPoint, holdProcess } from "../../base/index.ts";
import { AgentBusyError, InvalidInputError, NotFoundError } from "../../errors/index.ts";
import type { Queues } from "../../queues/index.ts";
import { type AgentKey, type AgentRecord, type Deletion, rootOf } from "../../state/index.ts";
import {
  deletedIdHash,
  type DeleteOutcome,
  type PendingDeletion,
  type StoredTree,
  type Stores,
  TreeChain,
} from "../../stores/index.ts";
import type { DeletedTree } from "../api/deletion-types.ts";
import { assertKnown, forgetData, keepsData, type KnownDefinitions, unknownKeepers } from "./personal-data.ts";

/** The services of a process that deleting trees needs. */
export interface DeletionDependencies {
  readonly stores: Stores;
  readonly tenant: string;
  readonly clock: Pick<Clock, "now" | "setDelay">;
  /** The queues with jobs of the trees. `undefined` if there are none. */
  readonly queues?: Pick<Queues, "cancel"> | undefined;
  /** The copies in the user's own stores. `undefined` if there are none. */
  readonly copies?: TreeCopies | undefined;
  /** The definitions whose plugins and tools are asked to forget. */
  readonly definitions: KnownDefinitions;
  /** Notifies agents that have new inbox items. */
  notify(agentIds: readonly string[]): void;
  /** Drops everything that this process has in memory of a deleted tree. */
  forget(rootAgentId: string, deletedAt: number): void;
  /** Calls the listener after each write to the tree. */
  onChange(rootAgentId: string, listener: () => void): () => void;
}

/** The copies of trees in the user's own stores. */
export interface TreeCopies {
  /** Names of the stores that cannot delete. */
  readonly undeletable: readonly string[];
  /** Whether the stores have everything of the tree up to the cursor. */
  isCopied(rootAgentId: string, cursor: number): Promise<boolean>;
  /** Deletes the copies of these agents, which may have been done before. */
  deleteTree(rootAgentId: string, agentIds: readonly string[]): Promise<void>;
}

/** How one tree is deleted. */
export interface HowToDelete {
  readonly by: string;
  readonly reason: Deletion["reason"];
  readonly abort?: boolean | undefined;
  readonly timeoutMs?: number | undefined;
  /** Deletes only trees that were not used since this time; others are skipped. */
  readonly unusedSince?: number | undefined;
  readonly keepCopies?: boolean | undefined;
  /** The owner who is deleted with the tree. Default: the owner's data stays. */
  readonly ownerId?: string | undefined;
}

const DEFAULT_TIMEOUT_MS = 10_000;
/** How often a tree that changes meanwhile is read again. The last attempt deletes it in any case. */
const ATTEMPTS = 5;
/** How many links of the hash chain are computed without a pause. */
const LINKS_AT_ONCE = 32;
/** How many unfinished deletions are finished at once. */
const PENDING_AT_ONCE = 500;

/** Throws `InvalidInputError` for the id of a subagent, and names the root. */
export function assertRoot(agentId: string): void {
  const root = rootOf(agentId);
  if (root === agentId) return;
  throw new InvalidInputError(
    `agent "${agentId}" is a subagent in the tree of "${root}"; a tree is deleted as a whole: delete "${root}"`,
    { details: { agentId, rootAgentId: root } },
  );
}

/**
 * Deletes one tree and finishes a deletion that was begun before; `undefined` if it is used (`unusedSince`). Steps, each of which may be
 * repeated: the deletion is stored as pending, the tree is deleted in one transaction, this process forgets it, jobs, copies, data of
 * plugins and schedules are deleted, the deletion is finished.
 * @throws NotFoundError if no such tree is or was stored, AgentBusyError while a turn is open, unless `abort` is set,
 * StoreUnavailableError if a plugin or tool could not forget, UnsupportedError if this process cannot finish it.
 */
export async function deleteTree(
  dependencies: DeletionDependencies,
  rootAgentId: string,
  how: HowToDelete,
): Promise<DeletedTree | undefined> {
  const { stores, tenant } = dependencies;
  const known = await stores.deletion(tenant, rootAgentId);
  const isStored = (await stores.readAgent({ tenant, agentId: rootAgentId })) !== undefined;
  if (!isStored && !known) throw new NotFoundError(`there is no agent "${rootAgentId}"`);
  if (!isStored && known) return await finish(dependencies, { rootAgentId, how, deletion: known, isRepeated: true });
  if (how.abort === true) await abortTree(dependencies, rootAgentId, how.timeoutMs ?? DEFAULT_TIMEOUT_MS);
  for (let attempt = 1; ; attempt += 1) {
    const tree = await stores.exportTree(tenant, rootAgentId);
    if (!tree) return await deleteTree(dependencies, rootAgentId, how);
    const hasCopies = dependencies.copies !== undefined && how.keepCopies !== true;
    const keepers = tree.agents.flatMap(({ record: { definition } }) => {
      const found = dependencies.definitions.get(definition.name);
      return found && keepsData(found) ? [found.name] : [];
    });
    const begun = { ...how, hasCopies, keepers, earlier: known?.pending };
    const deletion = await deletionOf(tree, dependencies.clock.now(), begun);
    const outcome = await stores.deleteTree(deletion, {
      isAtRest: how.abort !== true,
      ...(attempt < ATTEMPTS ? { entries: deletion.counts.entries } : {}),
      ...(how.unusedSince === undefined ? {} : { unusedSince: how.unusedSince }),
    });
    faultPoint("tree.deleted");
    if (outcome.type === "changed") continue;
    if (outcome.type === "used") return undefined;
    if (outcome.type === "busy") throw busy(rootAgentId, outcome);
    // "absent": another process has just deleted it, or the answer of the store was lost.
    return await finish(dependencies, { rootAgentId, how, deletion, tree, isRepeated: false });
  }
}

/** A tree that could not be deleted. */
export interface FailedDeletion {
  readonly agentId: string;
  readonly error: unknown;
}

/**
 * Finishes the deletions that were begun and not finished, for instance because their process was killed. One of a tree that is busy is
 * left; one of a tree that the retention chose is chosen again by the retention. Returns those that failed.
 */
export async function finishDeletions(dependencies: DeletionDependencies): Promise<readonly FailedDeletion[]> {
  const { stores, tenant } = dependencies;
  const failed: FailedDeletion[] = [];
  const pending = await stores.deletions({ tenant, isPending: true, limit: PENDING_AT_ONCE });
  for (const deletion of pending) {
    if (!isPending(deletion)) continue;
    const { rootAgentId } = deletion.pending;
    const isStored = (await stores.readAgent({ tenant, agentId: rootAgentId })) !== undefined;
    try {
      if (isStored && deletion.reason === "retention") await stores.finishDeletion(deletion);
      else await deleteTree(dependencies, rootAgentId, { by: deletion.by, reason: deletion.reason });
    } catch (error) {
      if (!(error instanceof AgentBusyError)) failed.push({ agentId: rootAgentId, error });
    }
  }
  return failed;
}

interface Finishing {
  readonly rootAgentId: string;
  readonly how: HowToDelete;
  readonly deletion: Deletion;
  /** The tree as it was read, if this call deleted it. */
  readonly tree?: StoredTree;
  /** Whether the tree had been deleted before this call. */
  readonly isRepeated: boolean;
}

async function finish(
  dependencies: DeletionDependencies,
  { rootAgentId, how, deletion, tree, isRepeated }: Finishing,
): Promise<DeletedTree> {
  const { stores, tenant, queues, copies, definitions } = dependencies;
  const { agentIds = [rootAgentId], keepers = [], ownerId = how.ownerId } = deletion.pending ?? {};
  dependencies.forget(rootAgentId, deletion.deletedAt);
  if (queues && tree) await cancelJobs(queues, tree);
  const { deletedAt, head, counts } = deletion;
  const dataLeft = unknownKeepers(tree?.definitions ?? [], definitions);
  const deleted: DeletedTree = { agentId: rootAgentId, deletedAt, head, counts, wasDeleted: isRepeated, dataLeft };
  const hasCopies = deletion.pending ? deletion.pending.hasCopies === true : how.keepCopies !== true;
  if (copies && hasCopies) await copies.deleteTree(rootAgentId, agentIds);
  faultPoint("copies.deleted");
  await forgetData(dependencies, [
    ...agentIds.map((id) => ({ tenant, scope: "agent", id }) as const),
    ...(ownerId === undefined ? [] : [{ tenant, scope: "owner", id: ownerId } as const]),
  ]);
  assertKnown(rootAgentId, keepers, definitions);
  faultPoint("data.forgotten");
  // It stays pending for a process with the user's own stores.
  if (!copies && deletion.pending?.hasCopies === true) return deleted;
  await stores.removeSchedules({ tenant, agentId: rootAgentId });
  // Repeated even for a finished one: its process may have been killed before the last bytes were overwritten.
  await stores.finishDeletion({ ...deletion, pending: { rootAgentId, agentIds: [...agentIds] } });
  return deleted;
}

function isPending(deletion: Deletion): deletion is PendingDeletion {
  return deletion.pending !== undefined;
}

function busy(rootAgentId: string, { agentId, openTurnId }: Extract<DeleteOutcome, { type: "busy" }>): AgentBusyError {
  const of = agentId === rootAgentId ? "" : ` of its subagent "${agentId}"`;
  return new AgentBusyError(
    `agent "${rootAgentId}" cannot be deleted while turn ${openTurnId}${of} is open; wait for it, or delete with { abort: true }`,
    { details: { agentId, openTurnId } },
  );
}

interface Begun extends HowToDelete {
  readonly hasCopies: boolean;
  readonly keepers: readonly string[];
  /** What an earlier call, which did not finish, had to delete. */
  readonly earlier: Deletion["pending"];
}

/** The line that stays of a tree, which is about to be deleted. */
async function deletionOf(
  tree: StoredTree,
  now: number,
  { by, reason, earlier, ...begun }: Begun,
): Promise<PendingDeletion> {
  const { tenant, rootAgentId, agents, rows, accounts } = tree;
  const chain = new TreeChain(tree);
  const links: (string | null)[] = [];
  for (const { hash } of chain.links()) {
    if (links.push(hash) % LINKS_AT_ONCE === 0) await setImmediate();
  }
  const { head } = chain;
  const hasCopies = begun.hasCopies || earlier?.hasCopies === true;
  const keepers = [...new Set([...begun.keepers, ...(earlier?.keepers ?? [])])].toSorted();
  const ownerId = begun.ownerId ?? earlier?.ownerId;
  const agentIds = agents.map(({ record }) => record.agentId);
  const tops = accounts.filter(({ parentId }) => parentId === null);
  const used = (of: "tokens" | "costMicros" | "toolCalls"): number =>
    tops.reduce((sum, account) => sum + Math.max(0, Math.round(account.used[of])), 0);
  return {
    tenant,
    idHash: deletedIdHash(tenant, rootAgentId),
    deletedAt: now,
    by,
    reason,
    counts: {
      agents: agents.length,
      turns: tree.turns.length,
      entries: agents.reduce((sum, { seq }) => sum + seq, 0),
      messages: rows.reduce((sum, { messages }) => sum + messages.length, 0),
      artifacts: agents.reduce((sum, { artifacts }) => sum + artifacts.length, 0),
      requests: agents.reduce((sum, { requests }) => sum + requests.length, 0),
    },
    used: { tokens: used("tokens"), costMicros: used("costMicros"), toolCalls: used("toolCalls") },
    head,
    links: head === null ? null : Buffer.from(links.join(""), "hex").toString("base64"),
    pending: {
      rootAgentId,
      agentIds: [...new Set([...agentIds, ...(earlier?.agentIds ?? [])])],
      ...(hasCopies ? { hasCopies } : {}),
      ...(keepers.length === 0 ? {} : { keepers }),
      ...(ownerId === undefined ? {} : { ownerId }),
    },
  };
}

/** Jobs that stay are harmless: their worker finds no call in the stores. */
async function cancelJobs(queues: Pick<Queues, "cancel">, { tenant, agents }: StoredTree): Promise<void> {
  for (const { record } of agents) {
    for (const [, { queue, callId, attempt }] of Object.entries(record.queued ?? {})) {
      const job = { tenant, agentId: record.agentId, callId, attempt };
      await queues.cancel(queue, job, "its agent was deleted").catch(() => undefined);
    }
  }
}

/** Aborts all open turns of a tree, and waits until they have ended, at most so long. */
async function abortTree(dependencies: DeletionDependencies, rootAgentId: string, timeoutMs: number): Promise<void> {
  const { stores, tenant, clock } = dependencies;
  const isLate = Promise.withResolvers<void>();
  const cancel = clock.setDelay(timeoutMs, () => isLate.resolve());
  const letGo = holdProcess();
  let moved = Promise.withResolvers<void>();
  const stop = dependencies.onChange(rootAgentId, () => moved.resolve());
  let isOver = false;
  const late = isLate.promise.then(() => {
    isOver = true;
  });
  try {
    const aborted = new Set<string>();
    while (!isOver) {
      moved = Promise.withResolvers<void>();
      const open = await openAgents(stores, { tenant, agentId: rootAgentId });
      if (open.length === 0) return;
      for (const { agentId, openTurnId } of open) {
        if (openTurnId === null || aborted.has(openTurnId)) continue;
        aborted.add(openTurnId);
        const command = { turnId: openTurnId, by: "user", reason: "the agent is deleted" } as const;
        const outcome = await stores.abort(
          { tenant, agentId },
          { ...command, stopReason: "user_requested" },
          clock.now(),
        );
        if (outcome.type !== "notFound") dependencies.notify(outcome.posted);
      }
      if (timeoutMs === 0) return;
      await Promise.race([moved.promise, late]);
    }
  } finally {
    stop();
    cancel();
    letGo();
  }
}

async function openAgents(stores: Stores, { tenant, agentId }: AgentKey): Promise<readonly AgentRecord[]> {
  const head = await stores.treeHead(tenant, agentId);
  return head?.agents.filter(({ openTurnId }) => openTurnId !== null) ?? [];
}
