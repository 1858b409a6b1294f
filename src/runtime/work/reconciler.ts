import type { Clock } from "../../base/index.ts";
import { type AgentKey, keyText, rootOf } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";

/** Number of unattended agents per query. */
const PAGE = 100;
/**
 * The pause between two checks, in leases: random within these bounds, so that the processes of a deployment do not check at the
 * same moment. A check after a lease has expired is at most half a lease late.
 */
const PAUSE = { shortest: 0.3, longest: 0.45 };
/** Maximum pause, in milliseconds, between attempts at an agent that is found repeatedly; pauses double up to this. */
const LONGEST_PAUSE_MS = 10 * 60_000;

export interface ReconcilerOptions {
  readonly stores: Pick<Stores, "unattended">;
  readonly tenant: string;
  /** Its `elapsed()` is the stores' monotonic time. */
  readonly clock: Clock;
  readonly random: () => number;
  readonly processId: string;
  readonly leaseMs: number;
  /** Whether this process has the definition of that name. */
  readonly isKnown: (definitionName: string) => boolean;
  /** Whether the periodic check skips the agent: it is active here, or another process should continue it. */
  readonly isAttended: (key: AgentKey) => boolean;
  /** For each agent, whether its wake is queued or running. */
  readonly areAwaited: (keys: readonly AgentKey[]) => Promise<readonly boolean[]>;
  /** Activates the agent, in this or another process; returns false if that was unnecessary or impossible. */
  readonly attend: (key: AgentKey) => Promise<boolean>;
}

interface Found {
  readonly times: number;
  readonly notBefore: number;
}

/** The result of checking the whole store. */
export interface Recovered {
  /** Agents that were activated, or whose wake was queued. */
  readonly taken: readonly string[];
  /** Agents that stay unattended, by the name of their definition, which this process does not know. */
  readonly unknown: ReadonlyMap<string, readonly string[]>;
}

/**
 * Finds agents that need an owner and have none: their process died, or the process that posted to them died before it notified a
 * process that can activate them.
 *
 * Invariants
 * 1. It checks at least every 0.45 leases: an abandoned agent is found within 1.5 leases of its last owner's last heartbeat.
 * 2. An agent that no process can activate keeps none busy: it is tried again after pauses that double. Agents whose definition
 *    this process does not know are not tried.
 * 3. An agent whose wake is queued (for any time) or running is not abandoned: another wake would have no effect.
 * 4. Agents of one tree are activated one after the other, its root first, and at most one page of agents at a time.
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

  /** How many times an unattended agent was found. */
  get count(): number {
    return this.#count;
  }

  /** Checks periodically until it is closed. */
  start(): void {
    const { clock, leaseMs, random } = this.#options;
    if (this.#isClosed) return;
    const pause = leaseMs * (PAUSE.shortest + (PAUSE.longest - PAUSE.shortest) * random());
    this.#cancel = clock.setDelay(Math.ceil(pause), () => {
      this.look()
        .catch((error: unknown) => {
          if (!this.#isClosed) process.emitWarning(`unattended agents could not be searched for: ${String(error)}`);
        })
        .finally(() => this.start());
    });
  }

  close(): void {
    this.#isClosed = true;
    this.#cancel?.();
  }

  /** Activates all unattended agents that no other process should continue and whose pause is over. */
  async look(): Promise<void> {
    const { isKnown, isAttended, clock } = this.#options;
    const seen = new Set<string>();
    for await (const page of this.#pages(isKnown)) {
      const unattended = page.filter((key) => !isAttended(key));
      for (const key of unattended) seen.add(keyText(key));
      const left = (await this.#leftBehind(unattended)).filter(
        (key) => clock.elapsed() >= (this.#found.get(keyText(key))?.notBefore ?? Number.NEGATIVE_INFINITY),
      );
      await this.#attendAll(left);
      if (this.#isClosed) return;
    }
    for (const text of this.#found.keys()) if (!seen.has(text)) this.#found.delete(text);
  }

  /**
   * For each of these agents, whether it is unattended. Agents of other tenants count as unattended, because their own workers
   * check them.
   */
  async areLeftBehind(agents: readonly AgentKey[]): Promise<boolean[]> {
    const { tenant } = this.#options;
    const found = new Set<string>();
    if (agents.some((key) => key.tenant === tenant)) {
      for await (const page of this.#pages(() => true)) for (const key of page) found.add(keyText(key));
    }
    return agents.map((key) => key.tenant !== tenant || found.has(keyText(key)));
  }

  /** Activates every unattended agent immediately, on request. */
  async recover(): Promise<Recovered> {
    const taken: string[] = [];
    const unknown = new Map<string, string[]>();
    const isKnown = (name: string, { agentId }: AgentKey): boolean => {
      if (this.#options.isKnown(name)) return true;
      unknown.set(name, [...(unknown.get(name) ?? []), agentId]);
      return false;
    };
    for await (const page of this.#pages(isKnown)) {
      taken.push(...(await this.#attendAll(await this.#leftBehind(page))));
      if (this.#isClosed) break;
    }
    return { taken, unknown };
  }

  async *#pages(isKnown: (name: string, key: AgentKey) => boolean): AsyncGenerator<readonly AgentKey[]> {
    const { stores, tenant, clock, processId, leaseMs } = this.#options;
    for (let after: string | undefined; ; ) {
      const query = { processId, leaseMs, limit: PAGE, after, isKnown };
      const page = await stores.unattended(tenant, query, clock.elapsed());
      yield page;
      after = page.at(-1)?.agentId;
      if (page.length < PAGE || after === undefined) return;
    }
  }

  async #leftBehind(unattended: readonly AgentKey[]): Promise<readonly AgentKey[]> {
    if (unattended.length === 0) return unattended;
    const awaited = await this.#options.areAwaited(unattended);
    return unattended.filter((_key, at) => awaited[at] !== true);
  }

  /** Returns the ids of the agents that were activated. */
  async #attendAll(keys: readonly AgentKey[]): Promise<string[]> {
    const byTree = Map.groupBy(keys, ({ agentId }) => rootOf(agentId));
    const taken = await Promise.all(
      [...byTree.values()].map(async (tree) => {
        const ofTree: string[] = [];
        for (const key of tree.toSorted((one, other) => one.agentId.length - other.agentId.length)) {
          if (!this.#isClosed && (await this.#attend(key))) ofTree.push(key.agentId);
        }
        return ofTree;
      }),
    );
    return taken.flat();
  }

  async #attend(key: AgentKey): Promise<boolean> {
    const { clock, leaseMs, attend } = this.#options;
    const text = keyText(key);
    const times = this.#found.get(text)?.times ?? 0;
    // No pause after the first time, because the agent may just not have been activated yet.
    const pause = times === 0 ? 0 : Math.min(leaseMs * 2 ** (times - 1), LONGEST_PAUSE_MS);
    this.#found.set(text, { times: times + 1, notBefore: clock.elapsed() + pause });
    this.#count += 1;
    return await attend(key);
  }
}
