import type { Clock } from "../../base/index.ts";
import { type AgentKey, keyText } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";

/** How many are asked of the stores at a time. */
const PAGE = 100;
/** An agent that is found again and again is looked for less and less often, in milliseconds. */
const LONGEST_PAUSE_MS = 10 * 60_000;

export interface ReconcilerOptions {
  readonly stores: Pick<Stores, "unattended">;
  readonly tenant: string;
  /** Its `elapsed()` is the stores' steady time. */
  readonly clock: Clock;
  readonly processId: string;
  readonly leaseMs: number;
  /** Whether the agent lives here, or is not to be brought back by this process. */
  readonly isAttended: (key: AgentKey) => boolean;
  /** Of each agent, whether its wake waits for room already, or runs. */
  readonly areAwaited: (keys: readonly AgentKey[]) => Promise<readonly boolean[]>;
  /** Has the agent taken up, here or elsewhere. */
  readonly attend: (key: AgentKey) => Promise<unknown>;
}

interface Found {
  readonly times: number;
  readonly notBefore: number;
}

/**
 * Looks for agents that somebody has to take up and nobody does: their process died, or whoever posted to them did before it
 * told anybody.
 *
 * Invariants
 * 1. It looks twice in the time of a lease: what was left behind is found at the latest half a lease after it can be taken up.
 * 2. One that nobody can take up does not keep anybody busy: it is tried again after pauses that double.
 * 3. One whose wake waits for room, however long, or runs is not left behind: another wake would change nothing.
 */
export class Reconciler {
  readonly #options: ReconcilerOptions;
  readonly #found = new Map<string, Found>();
  #cancel: (() => void) | undefined;
  #isClosed = false;
  #count = 0;

  constructor(options: ReconcilerOptions) {
    this.#options = options;
  }

  /** How often an agent was found that nobody attended to. */
  get count(): number {
    return this.#count;
  }

  start(): void {
    const { clock, leaseMs } = this.#options;
    if (this.#isClosed) return;
    this.#cancel = clock.setDelay(Math.ceil(leaseMs / 2), () => {
      this.look()
        .catch((error: unknown) => {
          if (!this.#isClosed) process.emitWarning(`agents left behind could not be looked for: ${String(error)}`);
        })
        .finally(() => this.start());
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel?.();
  }

  /** One look at all of them. */
  async look(): Promise<void> {
    const { stores, tenant, clock, processId, leaseMs, isAttended } = this.#options;
    const seen = new Set<string>();
    for (let after: string | undefined; ; ) {
      const query = { processId, leaseMs, limit: PAGE, after };
      const page = await stores.unattended(tenant, query, clock.elapsed());
      const lonely = page.filter((key) => !isAttended(key));
      for (const key of lonely) seen.add(keyText(key));
      const left = await this.#leftBehind(lonely);
      await Promise.all(left.map((key) => this.#attend(key)));
      after = page.at(-1)?.agentId;
      if (page.length < PAGE || after === undefined || this.#isClosed) break;
    }
    for (const text of this.#found.keys()) if (!seen.has(text)) this.#found.delete(text);
  }

  async #leftBehind(lonely: readonly AgentKey[]): Promise<readonly AgentKey[]> {
    if (lonely.length === 0) return lonely;
    const awaited = await this.#options.areAwaited(lonely);
    return lonely.filter((_key, at) => awaited[at] !== true);
  }

  async #attend(key: AgentKey): Promise<void> {
    const { clock, leaseMs, attend } = this.#options;
    const text = keyText(key);
    const { times, notBefore } = this.#found.get(text) ?? { times: 0, notBefore: Number.NEGATIVE_INFINITY };
    if (this.#isClosed || clock.elapsed() < notBefore) return;
    // The second time it is found it may just not have been taken up yet.
    const pause = times === 0 ? 0 : Math.min(leaseMs * 2 ** (times - 1), LONGEST_PAUSE_MS);
    this.#found.set(text, { times: times + 1, notBefore: clock.elapsed() + pause });
    this.#count += 1;
    await attend(key);
  }
}
