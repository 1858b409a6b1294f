import type { RegisteredProcess } from "../../stores/index.ts";
import type { FeedMessage, FeedOwner, FeedProcess } from "./messages.ts";
import { feedProcessOf, type Owner, ownersIn } from "./owners.ts";
import type { RunSource } from "./source.ts";

export type RunStatusMessage = Extract<FeedMessage, { readonly type: "status" }>;

/** How often `RunStatus` checks its source, in milliseconds; sooner after a change of the run. */
const LOOK_MS = 1_500;
const SOON_MS = 250;
/** How long stores may take to answer before they count as unreachable, in milliseconds. */
const LOST_MS = 2_500;
/** Checks take longer in large runs: checks after changes use at most this share of the time, reading owners less. */
const LOOKS_SHARE = 0.1;
const OWNERS_SHARE = 0.05;
const MOST_REQUESTS = 1_000;
/** An agent that moves to another process briefly has no owner. It counts as unowned after this many milliseconds. */
const UNOWNED_MS = 2_000;

/**
 * The state of one run's source: whether its stores answer, whether the processes that run its agents live, and which
 * requests are open.
 * Owns: the schedule of checks. Does not own: the stores, the readers.
 *
 * Invariants
 * 1. At most one check runs at a time, so unreachable stores are not queried repeatedly.
 * 2. Readers are notified within `LOOK_MS + LOST_MS` that the stores do not answer.
 */
export class RunStatus {
  readonly #source: RunSource;
  readonly #onChange: (status: RunStatusMessage) => void;
  readonly #onGone: () => void;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #dueAt = 0;
  /** Delay between a change and the check after it, in milliseconds. */
  #soonMs = SOON_MS;
  #isLooking = false;
  #isToLookAgain = false;
  #hasEnded = false;
  #reachedAt = Date.now();
  #owners: readonly Owner[] = [];
  #told: readonly FeedOwner[] = [];
  #unownedSince: ReadonlyMap<string, number> = new Map();
  #ownersDueAt = 0;
  #seenAt: ReadonlyMap<string, number> = new Map();
  /** The newest status, with all owners; `undefined` before the first check. */
  status: RunStatusMessage | undefined;

  /** `onGone`: called when the stores have the run no more. */
  constructor(source: RunSource, onChange: (status: RunStatusMessage) => void, onGone: () => void) {
    this.#source = source;
    this.#onChange = onChange;
    this.#onGone = onGone;
    this.#plan(0);
  }

  /** Checks the source soon, because the run has changed. */
  hurry(): void {
    if (this.#isLooking) this.#isToLookAgain = true;
    else if (this.#dueAt > performance.now() + this.#soonMs) this.#plan(this.#soonMs);
  }

  end(): void {
    this.#hasEnded = true;
    clearTimeout(this.#timer);
  }

  #plan(ms: number): void {
    clearTimeout(this.#timer);
    if (this.#hasEnded) return;
    this.#dueAt = performance.now() + ms;
    this.#timer = setTimeout(() => void this.#look(), ms);
    this.#timer.unref();
  }

  async #look(): Promise<void> {
    this.#isLooking = true;
    this.#isToLookAgain = false;
    const began = performance.now();
    const late = setTimeout(() => this.#tell({ isReachable: false }), LOST_MS);
    late.unref();
    try {
      const { stores, tenant, runId } = this.#source;
      const [root, known, open] = await Promise.all([
        stores.readAgent({ tenant, agentId: runId }),
        stores.processes(),
        stores.requests({ tenant, rootAgentId: runId, status: "open", limit: MOST_REQUESTS }),
      ]);
      clearTimeout(late);
      this.#reachedAt = Date.now();
      if (!root) return this.#onGone();
      await this.#readOwners();
      this.#tell({ isReachable: true, openRequests: open.map(({ requestId }) => requestId), ...this.#seen(known) });
    } catch {
      this.#tell({ isReachable: false });
    }
    clearTimeout(late);
    this.#isLooking = false;
    this.#soonMs = Math.min(LOOK_MS, Math.max(SOON_MS, (performance.now() - began) / LOOKS_SHARE));
    this.#plan(this.#isToLookAgain ? this.#soonMs : LOOK_MS);
  }

  async #readOwners(): Promise<void> {
    if (performance.now() < this.#ownersDueAt) return;
    const began = performance.now();
    this.#owners = await ownersIn(this.#source, { isBusy: true });
    const now = performance.now();
    this.#ownersDueAt = now + (now - began) / OWNERS_SHARE;
    const unowned = this.#owners.flatMap(({ agent, holder }) => (holder ? [] : agent.agentId));
    this.#unownedSince = new Map(unowned.map((agentId) => [agentId, this.#unownedSince.get(agentId) ?? now]));
    const told = this.#owners.flatMap(({ agent: { agentId }, holder }): FeedOwner[] => {
      if (holder) return [{ agentId, processId: holder.process.processId }];
      const isLeft = now - (this.#unownedSince.get(agentId) ?? now) >= UNOWNED_MS;
      return isLeft ? [{ agentId, processId: null }] : [];
    });
    if (JSON.stringify(told) !== JSON.stringify(this.#told)) this.#told = told;
  }

  #seen(known: readonly RegisteredProcess[]): Pick<RunStatusMessage, "processes" | "owners"> {
    const holders = new Map(this.#owners.flatMap(({ holder }) => (holder ? [[holder.process.processId, holder]] : [])));
    const processes = [...holders.values()].map(({ process }): FeedProcess => {
      const now = feedProcessOf(process, known);
      // The process may have been seen running after its last heartbeat.
      return { ...now, seenAt: Math.max(now.seenAt, this.#seenAt.get(now.processId) ?? 0) };
    });
    this.#seenAt = new Map(processes.map(({ processId, seenAt }) => [processId, seenAt]));
    return { processes, owners: this.#told };
  }

  #tell(change: Pick<RunStatusMessage, "isReachable"> & Partial<RunStatusMessage>): void {
    if (this.#hasEnded) return;
    const { processes = [], owners = [], openRequests = [] } = this.status ?? {};
    const at = { now: Date.now(), reachedAt: this.#reachedAt };
    this.status = { type: "status", run: this.#source.runId, ...at, processes, owners, openRequests, ...change };
    this.#onChange(this.status);
  }
}
