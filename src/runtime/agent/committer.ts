import { setMaxListeners } from "node:events";
import { backoffDelay, type Clock, faultPoint, holdProcess, processContext } from "../../base/index.ts";
import { LeaseLostError, StoreRolledBackError, StoreUnavailableError } from "../../errors/index.ts";
import type { AgentKey, EventSource } from "../../state/index.ts";
import type { Batch, CommitOutcome, Stale, Stores } from "../../stores/index.ts";

/** An agent's journal writer, as used by the committer. */
export interface CommitSource {
  /** The next batch; `undefined` if there is nothing to commit or a batch is in flight. */
  takeBatch(): Batch | undefined;
  onOutcome(batch: Batch, outcome: CommitOutcome): void;
  /** Called when the stores temporarily refuse the batch. Returns `false` if the committer must not send it again. */
  onRefused(error: StoreUnavailableError): boolean;
  onFailure(error: unknown): void;
}

/** Pauses between attempts to send a refused batch. */
const PAUSES = { baseMs: 50, capMs: 2_000 };

interface Order {
  readonly source: CommitSource;
  readonly batch: Batch;
}

/**
 * Sends all batches that became ready within one event-loop turn together; the store decides which of them share a transaction.
 * Owns: which sources are due. Does not own: the batches, or the meaning of their outcomes.
 *
 * Invariants
 * 1. A source is asked at most once per event-loop turn, even if no caller awaits the result.
 * 2. A transport failure leaves the outcome open: the same batches are sent again under the same ids until they are answered, and
 *    their sources are called each time.
 * 3. A batch that is refused, or breaks its transaction, does not delay others: each batch is sent again alone.
 */
export class Committer {
  readonly #stores: Stores;
  readonly #clock: Clock;
  readonly #random: () => number;
  readonly #due = new Set<CommitSource>();
  #scheduled = false;
  #underWay = 0;
  readonly #closing = new AbortController();
  #idle = Promise.withResolvers<void>();
  #isIdle = true;

  constructor(stores: Stores, clock: Clock, random: () => number) {
    this.#stores = stores;
    this.#clock = clock;
    this.#random = random;
    this.#idle.resolve();
    // Each batch that waits to be sent again listens to this signal.
    setMaxListeners(0, this.#closing.signal);
  }

  schedule(source: CommitSource): void {
    this.#due.add(source);
    if (this.#scheduled) return;
    this.#scheduled = true;
    if (this.#isIdle) this.#idle = Promise.withResolvers<void>();
    this.#isIdle = false;
    // A batch of several agents belongs to none of their turns' async contexts.
    processContext.run(() => setImmediate(() => this.#flush()));
  }

  /** Resolves when no batch is due or in flight. */
  async drained(): Promise<void> {
    await this.#idle.promise;
  }

  /** Stops sending refused batches again. */
  close(): void {
    this.#closing.abort();
  }

  #flush(): void {
    this.#scheduled = false;
    const orders: Order[] = [];
    for (const source of this.#due) {
      const batch = source.takeBatch();
      if (batch) orders.push({ source, batch });
    }
    this.#due.clear();
    if (orders.length === 0) return this.#settleIdle();
    this.#underWay += 1;
    faultPoint("commit.before");
    void this.#send(orders).then(() => {
      this.#underWay -= 1;
      this.#settleIdle();
    });
  }

  async #send(orders: readonly Order[], attempt = 1): Promise<void> {
    let outcomes: readonly CommitOutcome[];
    try {
      const batches = orders.map(({ batch }) => batch);
      outcomes = await this.#stores.commit(batches, this.#clock.now(), this.#clock.elapsed());
    } catch (error) {
      return await this.#sendAgain(orders, attempt, error);
    }
    faultPoint("commit.after");
    for (const [index, { source, batch }] of orders.entries()) {
      const outcome = outcomes[index];
      if (outcome) tell(source, batch, outcome);
    }
  }

  async #sendAgain(orders: readonly Order[], attempt: number, error: unknown): Promise<void> {
    if (error instanceof StoreUnavailableError && !this.#closing.signal.aborted) {
      // Each batch is sent alone, because only one of them may be too large.
      const left = orders.filter(({ source }) => source.onRefused(error));
      if (left.length > 0) await this.#pause(backoffDelay(attempt, this.#random(), PAUSES));
      await Promise.all(left.map((order) => this.#send([order], attempt + 1)));
      return;
    }
    const [only, ...others] = orders;
    if (only && others.length === 0) return only.source.onFailure(error);
    await Promise.all(orders.map((order) => this.#send([order])));
  }

  async #pause(ms: number): Promise<void> {
    const letGo = holdProcess();
    // close() ends the pause.
    await this.#clock.sleep(ms, this.#closing.signal).catch(() => undefined);
    letGo();
  }

  #settleIdle(): void {
    if (this.#underWay > 0 || this.#due.size > 0) return;
    this.#isIdle = true;
    this.#idle.resolve();
  }
}

function tell(source: CommitSource, batch: Batch, outcome: CommitOutcome): void {
  try {
    source.onOutcome(batch, outcome);
  } catch (error) {
    // The source failed while handling the outcome: its agent is discarded and recovered from the journal.
    source.onFailure(error);
  }
}

/**
 * The error of a stale commit: another process owns the agent, or the stores have lost acknowledged entries. Epochs and journals
 * only grow, so the second case also emits a process warning.
 */
export function staleError(
  { agentId }: AgentKey,
  had: { readonly epoch: number; readonly seq: number },
  found: Stale,
): LeaseLostError {
  // Only the owner writes under its epoch, so a higher seq means that the epoch was issued twice.
  const isTwice = found.epoch === had.epoch && found.seq > had.seq;
  const details = { agentId, hadEpoch: had.epoch, hadSeq: had.seq, foundEpoch: found.epoch, foundSeq: found.seq };
  if (found.epoch >= had.epoch && found.seq >= had.seq && !isTwice) {
    return new LeaseLostError(`agent ${agentId} was taken over under epoch ${found.epoch}`, { details });
  }
  const message = `the stores have lost entries of agent ${agentId} that they had acknowledged: it was at seq ${had.seq} under epoch ${had.epoch}, and is stored at seq ${found.seq} under epoch ${found.epoch}; it continues from the stored state`;
  const cause = new StoreRolledBackError(message, { details });
  process.emitWarning(message, { code: "TROUPE_STORES_ROLLED_BACK" });
  return new LeaseLostError(message, { cause, details });
}

/** An agent of this process whose batch the stores refused. */
interface Refused {
  readonly identity: EventSource;
  readonly isLost: boolean;
  readonly openTurnId: string | null;
  /** The turn that ended last, possibly with the refused batch. */
  readonly lastTurnId: string | null;
  turn(turnId: string): { readonly step: number } | undefined;
}

interface OutageOptions {
  /** Sends a warning to the turn's followers, without storing it. */
  warn(source: EventSource, warning: LiveWarning): void;
}

export interface LiveWarning {
  readonly turnId: string;
  readonly step: number;
  readonly code: string;
  readonly message: string;
}

/**
 * Batches that the stores temporarily refuse because they are full, locked or unreachable. They are sent again until they are
 * stored; until then `health()` and warnings name them.
 * Owns: whose batches were refused, and why. Does not own: sending them again.
 *
 * Invariant: an outage lasts from the first refusal until all batches are stored. Each outage emits one process warning, and one
 * warning per turn.
 */
export class Outage {
  readonly #options: OutageOptions;
  readonly #refused = new Map<Refused, string>();

  constructor(options: OutageOptions) {
    this.#options = options;
  }

  /** For `health()`; empty while the stores accept every batch. */
  get problems(): string[] {
    this.#forgetLost();
    const [first] = this.#refused.values();
    if (first === undefined) return [];
    const { size } = this.#refused;
    return [`the stores refuse commits of ${size} ${size === 1 ? "agent" : "agents"} of this process: ${first}`];
  }

  refused(activation: Refused, { message }: StoreUnavailableError): void {
    this.#forgetLost();
    const isFirst = this.#refused.size === 0;
    const isNew = !this.#refused.has(activation);
    this.#refused.set(activation, message);
    const { agentId } = activation.identity;
    const told = `a commit of agent ${agentId} was refused and is retried until it is stored; until then it has no effect: ${message}`;
    if (isFirst) process.emitWarning(told, { code: "TROUPE_STORES_REFUSE" });
    const turnId = activation.openTurnId ?? activation.lastTurnId;
    if (!isNew || turnId === null) return;
    const step = activation.turn(turnId)?.step ?? 0;
    this.#options.warn(activation.identity, { turnId, step, code: "store_unavailable", message: told });
  }

  /** Must be called after each commit. */
  taken(activation: Refused): void {
    if (this.#refused.size > 0) this.#refused.delete(activation);
  }

  #forgetLost(): void {
    for (const activation of this.#refused.keys()) if (activation.isLost) this.#refused.delete(activation);
  }
}
