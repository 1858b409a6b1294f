import type { Clock } from "../../base/index.ts";
import { turnAccountId } from "../../budget/index.ts";
import { CorruptRecordError } from "../../errors/index.ts";
import { type AgentKey, agentOfTurn, rootOf } from "../../state/index.ts";
import { type ForeignWrites, isTreeChanged, type Stores } from "../../stores/index.ts";
import { MachineFold } from "../agent/rebuild.ts";
import type { RuntimeHealth } from "../api/runtime-health.ts";

/** The first check of a tree comes after this many heartbeats without writes to it; later pauses double. */
const FIRST_PAUSE = 2;
/** Maximum pause if the store cannot report other processes' writes; otherwise `LONGEST_PAUSE` applies. */
const LONGEST_BLIND_PAUSE = 8;
const LONGEST_PAUSE = 64;

export interface DamageWatchOptions {
  readonly stores: Stores;
  readonly tenant: string;
  readonly clock: Pick<Clock, "now">;
  /** Aborted when the runtime has been shut down. */
  readonly closed: AbortSignal;
  /** Ids of turns that callers in this process wait for. */
  awaited(): Iterable<string>;
  /** Called if a turn that callers of this process wait for cannot continue. */
  onStuck(turnId: string, error: CorruptRecordError): void;
}

interface Look {
  /** The heartbeat at which the check is due. */
  at: number;
  pause: number;
}

/**
 * Finds agents whose stored records are unreadable, so that callers waiting for them get an error, whichever process should run
 * them.
 * Owns: which agents were found damaged and since when, and when the next check is due. Does not own: the waiting callers.
 *
 * Invariants
 * 1. A tree with recent writes is not checked. A turn without progress is checked, and again after pauses that double.
 * 2. A turn is checked through its own agent and the agents that it waits for; damage elsewhere in the tree stops no turn.
 * 3. One process warning is emitted per agent, until its records are readable again.
 */
export class DamageWatch {
  readonly #options: DamageWatchOptions;
  /** By the id of an awaited turn, of a followed tree, or of a damaged agent. */
  readonly #looks = new Map<string, Look>();
  readonly #followers = new Map<string, Set<(error: CorruptRecordError) => void>>();
  readonly #found = new Map<string, { readonly error: CorruptRecordError; readonly since: number }>();
  #beats = 0;
  #isLooking = false;

  constructor(options: DamageWatchOptions) {
    this.#options = options;
  }

  get damaged(): RuntimeHealth["damaged"] {
    return [...this.#found].map(([agentId, { error, since }]) => ({ agentId, message: error.message, since }));
  }

  /** The error found for an agent; `undefined` once its records are readable again. */
  of(agentId: string): CorruptRecordError | undefined {
    return this.#found.get(agentId)?.error;
  }

  /** Calls the listener if the open turn of the tree's root cannot continue; returns a function that removes it. */
  follow(rootAgentId: string, listener: (error: CorruptRecordError) => void): () => void {
    const listeners = this.#followers.get(rootAgentId) ?? new Set();
    this.#followers.set(rootAgentId, listeners.add(listener));
    return () => {
      if (listeners.delete(listener) && listeners.size === 0) this.#followers.delete(rootAgentId);
    };
  }

  /** Records that an agent could not continue in this process. Callers waiting in its tree get the error after the next check. */
  found(agentId: string, error: unknown): void {
    if (!(error instanceof CorruptRecordError)) return;
    this.#note(agentId, error);
    const root = rootOf(agentId);
    for (const [id, look] of this.#looks) if (rootOf(agentOf(id)) === root) look.at = this.#beats;
    for (const id of this.#waiting()) {
      if (rootOf(agentOf(id)) === root && !this.#looks.has(id))
        this.#looks.set(id, { at: this.#beats, pause: FIRST_PAUSE });
    }
    this.#lookAtDue();
  }

  /** Postpones the next check of these trees, because another process has written to them. */
  heard(writes: ForeignWrites): void {
    const { tenant } = this.#options;
    for (const [id, look] of this.#looks) {
      if (!isTreeChanged(writes, { tenant, agentId: agentOf(id) })) continue;
      const isBlind = writes === "any";
      look.pause = isBlind ? Math.min(look.pause, LONGEST_BLIND_PAUSE) : FIRST_PAUSE;
      look.at = isBlind ? Math.min(look.at, this.#beats + LONGEST_BLIND_PAUSE) : this.#beats + FIRST_PAUSE;
    }
  }

  /** Must be called with each heartbeat of the process. */
  beat(): void {
    if (this.#options.stores.kind === "memory") return;
    this.#beats += 1;
    const waiting = this.#waiting();
    for (const id of this.#looks.keys()) if (!waiting.has(id)) this.#looks.delete(id);
    for (const id of waiting) {
      if (!this.#looks.has(id)) this.#looks.set(id, { at: this.#beats + FIRST_PAUSE, pause: FIRST_PAUSE });
    }
    this.#lookAtDue();
  }

  #waiting(): Set<string> {
    return new Set([...this.#options.awaited(), ...this.#followers.keys(), ...this.#found.keys()]);
  }

  #lookAtDue(): void {
    // A tree that becomes due during this check waits for the next heartbeat.
    if (this.#isLooking) return;
    this.#isLooking = true;
    void this.#lookAll().finally(() => {
      this.#isLooking = false;
    });
  }

  async #lookAll(): Promise<void> {
    for (const [id, look] of this.#looks) {
      if (look.at > this.#beats) continue;
      look.pause = Math.min(2 * look.pause, LONGEST_PAUSE);
      look.at = this.#beats + look.pause;
      try {
        await this.#look(id);
      } catch {
        // The stores do not answer now; the next check comes after the pause.
      }
      if (this.#options.closed.aborted) return;
    }
  }

  async #look(id: string): Promise<void> {
    const { stores, tenant } = this.#options;
    const agentId = agentOf(id);
    const damage = await damageOf(stores, { tenant, agentId });
    if (this.#options.closed.aborted) return;
    if (damage?.agentId !== agentId) this.#found.delete(agentId);
    if (!damage) return;
    this.#note(damage.agentId, damage.error);
    if (id !== agentId) return this.#options.onStuck(id, damage.error);
    for (const listener of this.#followers.get(id) ?? []) listener(damage.error);
  }

  #note(agentId: string, error: CorruptRecordError): void {
    if (this.#found.has(agentId)) return;
    this.#found.set(agentId, { error, since: this.#options.clock.now() });
    process.emitWarning(`agent ${agentId} cannot continue: ${error.message}`, { code: "TROUPE_CORRUPT_RECORD" });
  }
}

/** The agent's id, from a turn id or an agent id. */
function agentOf(id: string): string {
  return id.includes("#") ? agentOfTurn(id) : id;
}

interface Damage {
  readonly agentId: string;
  readonly error: CorruptRecordError;
}

/**
 * The first agent that cannot continue because its records are unreadable: this agent, or a child that its open turn waits for.
 */
async function damageOf(stores: Stores, key: AgentKey): Promise<Damage | undefined> {
  let children: readonly string[];
  try {
    children = await readAsToGoOn(stores, key);
  } catch (error) {
    if (error instanceof CorruptRecordError) return { agentId: key.agentId, error };
    throw error;
  }
  for (const agentId of children) {
    const damage = await damageOf(stores, { ...key, agentId });
    if (damage) return damage;
  }
  return undefined;
}

/** Reads everything that continuing the agent's open turn would read. Returns the children that the turn waits for. */
async function readAsToGoOn(stores: Stores, key: AgentKey): Promise<readonly string[]> {
  const { tenant, agentId } = key;
  const record = await stores.readAgent(key);
  if (!record || record.openTurnId === null) return [];
  await stores.holder(key);
  for (let id: string | null = turnAccountId(record.openTurnId); id !== null; ) {
    id = (await stores.account(tenant, id))?.parentId ?? null;
  }
  const [rows] = await Promise.all([
    stores.readJournal(key, (record.checkpoint?.seq ?? 0) + 1),
    stores.inbox(key),
    stores.requests({ tenant, agentId, turnId: record.openTurnId, status: "open" }),
    stores.messages(key),
  ]);
  const fold = new MachineFold(record.checkpoint);
  for (const { entries } of rows) for (const entry of entries) fold.apply(entry);
  return fold.agent.context.openChildIds;
}
