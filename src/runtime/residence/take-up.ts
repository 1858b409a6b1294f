import type { AgentDefinition } from "../../agents/index.ts";
import { AlreadyOwnedError, NotFoundError } from "../../errors/index.ts";
import type { AgentKey } from "../../state/index.ts";
import type { AcquireOutcome, Stores } from "../../stores/index.ts";
import type { ActivationStart } from "../agent/activation.ts";
import type { AuthBook } from "../agent/turn-auth.ts";
import { MachineFold } from "../agent/rebuild.ts";

export interface TakeUpSource {
  readonly stores: Stores;
  /** Whose `elapsed()` is the stores' steady time. */
  readonly clock: { elapsed(): number };
  readonly leaseMs: number;
  readonly process: { readonly processId: string };
  readonly definitions: ReadonlyMap<string, AgentDefinition>;
  readonly auth: AuthBook;
}

/**
 * Takes an agent's lease under a new epoch and recovers its state: the checkpoint, and the entries that follow it.
 * Throws `NotFoundError` for an unknown agent or definition, `AlreadyOwnedError` while another living process has it.
 */
export async function takeUp(source: TakeUpSource, key: AgentKey): Promise<ActivationStart> {
  const { stores, clock, leaseMs, process, definitions, auth } = source;
  const isKnown = (name: string): boolean => definitions.has(name);
  const taken = await stores.acquire(key, process.processId, leaseMs, clock.elapsed(), isKnown);
  const lease = acquired(taken, key);
  const { record, epoch, seq, at } = lease;
  try {
    const definition = definitions.get(record.definition.name);
    if (!definition) throw unknownDefinition(key, record.definition.name);
    const fold = new MachineFold(record.checkpoint);
    const folded = record.checkpoint?.seq ?? 0;
    const [rows, history] = await Promise.all([
      seq === folded ? [] : stores.readJournal(key, folded + 1),
      seq === 0 ? [] : stores.messages(key),
    ]);
    for (const row of rows) for (const entry of row.entries) fold.apply(entry);
    if (fold.turn) await auth.resume(record, fold.turn);
    const snapshot = seq === 0 ? undefined : fold.toSnapshot();
    const turnEntries = fold.turn ? fold.turnEntries : [];
    const isAborted = record.abort !== null && record.abort.turnId === record.openTurnId;
    const aborts = isAborted ? (await stores.inbox(key)).filter(({ kind }) => kind === "abort") : [];
    return { key, record, definition, epoch, seq, at, snapshot, turnEntries, history, aborts };
  } catch (error) {
    // Also while something waits in its inbox: that is for whoever can run it.
    await stores.release(key, epoch, { as: "leaving", steady: clock.elapsed() });
    throw error;
  }
}

function acquired(lease: AcquireOutcome, key: AgentKey): Extract<AcquireOutcome, { type: "acquired" }> {
  if (lease.type === "acquired") return lease;
  if (lease.type === "notFound") throw new NotFoundError(`there is no agent "${key.agentId}"`);
  if (lease.type === "unknown") throw unknownDefinition(key, lease.definition);
  const { by, epoch } = lease;
  throw new AlreadyOwnedError(`agent "${key.agentId}" is run by process ${by.pid}`, {
    details: { pid: by.pid, epoch },
  });
}

function unknownDefinition({ agentId }: AgentKey, name: string): NotFoundError {
  return new NotFoundError(`agent "${agentId}" runs the definition "${name}", which this runtime was not given`);
}
