import { definitionInFork } from "../../actors/index.ts";
import type { AgentDefinition } from "../../agents/index.ts";
import { AgentBusyError, AlreadyOwnedError, LeaseLostError, NotFoundError } from "../../errors/index.ts";
import type { AgentKey, AgentRecord, InboxItem } from "../../state/index.ts";
import {
  type AcquireOutcome,
  currentProcess,
  isRunning,
  type ProcessIdentity,
  type Stores,
} from "../../stores/index.ts";
import { Activation, type ActivationStart } from "../agent/activation.ts";
import { MachineFold } from "../agent/rebuild.ts";
import type { ActivationPorts } from "../agent/live-view.ts";
import type { TurnAuth } from "../agent/turn-auth.ts";
import type { Handover } from "./handover.ts";
import type { Placements } from "./placements.ts";

export interface RecoverySource {
  readonly stores: Stores;
  /** Its `elapsed()` is the stores' monotonic time. */
  readonly clock: { elapsed(): number };
  readonly leaseMs: number;
  readonly present: () => Promise<void>;
  readonly process: { readonly processId: string };
  readonly definitions: ReadonlyMap<string, AgentDefinition>;
  readonly auth: TurnAuth;
}

/**
 * Acquires an agent's lease under a new epoch and recovers its state from the checkpoint and the entries after it. Throws
 * `NotFoundError` for an unknown agent or definition, `AlreadyOwnedError` while another living process owns it.
 */
export async function recoverAgent(
  source: RecoverySource,
  key: AgentKey,
  handover: Pick<Handover, "giveUp">,
): Promise<ActivationStart> {
  const { stores, clock, leaseMs, process, definitions } = source;
  const isKnown = (name: string): boolean => definitions.has(name);
  const taken = await stores.acquire(key, process.processId, leaseMs, clock.elapsed(), isKnown);
  const lease = acquired(taken, key);
  const { record, epoch } = lease;
  try {
    if (!isKnown(record.definition.name)) throw unknownDefinition(key, record.definition.name);
    return await recovered(source, key, lease);
  } catch (error) {
    await handover.giveUp(key, epoch);
    throw error;
  }
}

type Lease = Pick<ActivationStart, "record" | "epoch" | "seq" | "at">;

async function recovered(source: RecoverySource, key: AgentKey, lease: Lease): Promise<ActivationStart> {
  const { stores, definitions, auth } = source;
  const { record, epoch, seq, at } = lease;
  const known = definitions.get(record.definition.name);
  if (!known) throw unknownDefinition(key, record.definition.name);
  const definition = definitionInFork(record, known);
  if (seq === 0) {
    const fresh = { snapshot: undefined, turnEntries: [], history: [], aborts: await abortsOf(stores, record) };
    return { key, record, definition, epoch, seq, at, ...fresh };
  }
  const fold = new MachineFold(record.checkpoint);
  const folded = record.checkpoint?.seq ?? 0;
  const [rows, history] = await Promise.all([
    seq === folded ? [] : stores.readJournal(key, folded + 1),
    stores.messages(key),
  ]);
  for (const row of rows) for (const entry of row.entries) fold.apply(entry);
  if (fold.turn) await auth.resume(record, fold.turn);
  const snapshot = fold.toSnapshot();
  const turnEntries = fold.turn ? fold.turnEntries : [];
  const aborts = await abortsOf(stores, record);
  return { key, record, definition, epoch, seq, at, snapshot, turnEntries, history, aborts };
}

/** Aborts of the open turn that no owner has taken from the inbox. */
async function abortsOf(stores: Stores, record: AgentRecord): Promise<readonly InboxItem[]> {
  const isAborted = record.abort !== null && record.abort.turnId === record.openTurnId;
  return isAborted ? (await stores.inbox(record)).filter(({ kind }) => kind === "abort") : [];
}

function acquired(lease: AcquireOutcome, key: AgentKey): Extract<AcquireOutcome, { type: "acquired" }> {
  if (lease.type === "acquired") return lease;
  if (lease.type === "notFound") throw new NotFoundError(`there is no agent "${key.agentId}"`);
  if (lease.type === "unknown") throw unknownDefinition(key, lease.definition);
  const { by, epoch } = lease;
  const { pid, bootId } = currentProcess(by.processId);
  const holder =
    by.pid === pid && by.bootId === bootId
      ? `another runtime of this process (${pid}); share one with getRuntime(), or shut that one down first`
      : `process ${by.pid}`;
  throw new AlreadyOwnedError(`agent "${key.agentId}" is run by ${holder}`, { details: { pid: by.pid, epoch } });
}

function unknownDefinition({ agentId }: AgentKey, name: string): NotFoundError {
  return new NotFoundError(`agent "${agentId}" runs the definition "${name}", which this runtime does not know`);
}

interface ChangeDependencies extends RecoverySource {
  readonly placements: Placements<Activation>;
  readonly handover: Handover;
  readonly ports: ActivationPorts<Activation>;
}

/**
 * Changes an agent between two turns without running any step of it. If it is not active in this process, its lease is held
 * briefly. Returns false if an item has arrived meanwhile. Throws `AgentBusyError` while a turn is open, and `LeaseLostError` if
 * nothing was changed.
 */
export async function changeAtRest(
  dependencies: ChangeDependencies,
  key: AgentKey,
  change: (activation: Activation) => void,
): Promise<boolean> {
  const { placements, handover } = dependencies;
  for (;;) {
    const live = await placements.present(key.agentId);
    if (live) {
      assertAtRest(key, live.openTurnId);
      change(live);
      await assertSettled(handover, live);
      return true;
    }
    if (placements.isFree(key.agentId)) break;
  }
  const { promise: over, resolve } = Promise.withResolvers<void>();
  placements.send(key.agentId, { type: "change.started" }, { over });
  try {
    return await visit(dependencies, key, change);
  } finally {
    placements.send(key.agentId, { type: "change.ended" });
    resolve();
  }
}

async function visit(
  dependencies: ChangeDependencies,
  key: AgentKey,
  change: (activation: Activation) => void,
): Promise<boolean> {
  const { handover, ports } = dependencies;
  await dependencies.present();
  const start = await recoverAgent(dependencies, key, handover);
  const { openTurnId } = start.record;
  if (openTurnId !== null) await handover.giveUp(key, start.epoch);
  assertAtRest(key, openTurnId);
  const activation = new Activation(start, ports);
  activation.start();
  try {
    change(activation);
    await assertSettled(handover, activation);
    if (await handover.release(activation)) return true;
  } catch (error) {
    activation.discard(`the change of agent ${key.agentId} has failed`);
    await handover.giveUp(key, start.epoch);
    throw error;
  }
  await handover.leave(activation);
  return false;
}

function assertAtRest({ agentId }: AgentKey, openTurnId: string | null): void {
  if (openTurnId === null) return;
  throw new AgentBusyError(`agent "${agentId}" is busy with turn ${openTurnId}; wait for it, or abort it first`, {
    details: { openTurnId },
  });
}

async function assertSettled(handover: Handover, activation: Activation): Promise<void> {
  if (await handover.settle(activation)) return;
  throw new LeaseLostError(`another process took over agent "${activation.key.agentId}" before the change was made`);
}

/** Returns false if the owner is known to be dead: a process on this machine can be checked immediately. */
export async function isHeldByOthers(
  { stores, process: self }: { readonly stores: Pick<Stores, "holder">; readonly process: ProcessIdentity },
  key: AgentKey,
): Promise<boolean> {
  return isElsewhere((await stores.holder(key))?.process, self);
}

/** Whether this is another process that is not known to be dead. */
export function isElsewhere(holder: ProcessIdentity | undefined, self: ProcessIdentity): boolean {
  if (!holder || holder.processId === self.processId) return false;
  return holder.bootId !== self.bootId || wasRunning(holder);
}

/** How long a process of this machine counts as running after it was seen running, in milliseconds. */
const SEEN_MS = 50;
const PROCESSES_SEEN = 1_000;
const seen = new Map<string, number>();

/** A process that dies right after it was seen leaves its agents behind even if its death is noticed immediately. */
function wasRunning(holder: ProcessIdentity): boolean {
  const now = performance.now();
  const { processId } = holder;
  if (now < (seen.get(processId) ?? Number.NEGATIVE_INFINITY)) return true;
  const isAlive = isRunning(holder);
  seen.delete(processId);
  if (seen.size >= PROCESSES_SEEN) seen.clear();
  if (isAlive) seen.set(processId, now + SEEN_MS);
  return isAlive;
}
