import { type Account, addModelUse, noModelUse, type ModelUse, spendingByAgent } from "../../budget/index.ts";
import { type AgentRecord, textOf } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";

/** The figures of a whole tree for a list of runs. */
export interface RunDigest {
  /** The beginning of its first input, unredacted; empty if there is none yet. */
  readonly task: string;
  readonly agents: number;
  readonly failedAgents: number;
  /** Ids of the agents with an open turn. */
  readonly busyIds: readonly string[];
  readonly spending: readonly DefinitionUse[];
}

/** Use of one model by the own calls of one definition's agents. */
export interface DefinitionUse {
  readonly name: string;
  readonly model: string;
  readonly use: ModelUse;
}

interface Kept {
  readonly digest: RunDigest;
  /** Cursor of the last row that the digest includes. */
  readonly cursor: number;
  /** When the digest may be computed again, by `performance.now()`. */
  readonly staleAt: number;
}

/** The first turn of a run begins in one of its first rows. */
const FIRST_ROWS = 8;
/** Longer than the shown text, so that a secret across the cut is still found. */
const LONGEST_TASK = 4_000;
const MOST_KEPT = 1_000;
/** While the run works, a digest is kept for this many times the time it took to compute. */
const KEPT_TIMES = 20;

/**
 * A cache of run digests. Computing a digest reads the whole tree, which is too slow for a list that is polled.
 *
 * Invariants
 * 1. A digest is computed again only after its run has a new row.
 * 2. The digest of a working run is kept for at most `KEPT_TIMES` the time it took to compute.
 */
export class RunDigests {
  readonly #kept = new WeakMap<Stores, Map<string, Kept>>();

  forget(stores: Stores, tenant: string, runId: string): void {
    this.#kept.get(stores)?.delete(JSON.stringify([tenant, runId]));
  }

  async of(stores: Stores, tenant: string, runId: string): Promise<RunDigest> {
    const ofStores = this.#kept.get(stores) ?? new Map<string, Kept>();
    this.#kept.set(stores, ofStores);
    const key = JSON.stringify([tenant, runId]);
    const known = ofStores.get(key);
    if (known && performance.now() < known.staleAt) return known.digest;
    if (known && (await stores.readTree(tenant, runId, known.cursor, 1)).length === 0) return known.digest;
    const begun = performance.now();
    const { cursor = 0, agents = [], accounts = [] } = (await stores.treeHead(tenant, runId)) ?? {};
    const task =
      known !== undefined && known.digest.task !== "" ? known.digest.task : await taskOf(stores, tenant, runId);
    const failedAgents = agents.filter(({ status, error }) => status === "failed" || error !== null).length;
    const busyIds = agents.flatMap(({ agentId, openTurnId }) => (openTurnId === null ? [] : [agentId]));
    const digest = { task, agents: agents.length, failedAgents, busyIds, spending: spendingOf(agents, accounts) };
    const ended = performance.now();
    ofStores.delete(key);
    ofStores.set(key, { digest, cursor, staleAt: ended + (ended - begun) * KEPT_TIMES });
    const [oldest] = ofStores.keys();
    if (ofStores.size > MOST_KEPT && oldest !== undefined) ofStores.delete(oldest);
    return digest;
  }
}

function spendingOf(agents: readonly AgentRecord[], accounts: readonly Account[]): DefinitionUse[] {
  const uses = new Map<string, DefinitionUse>();
  const spending = spendingByAgent(accounts);
  for (const { agentId, definition } of agents) {
    for (const [model, use] of Object.entries(spending.get(agentId)?.own ?? {})) {
      const key = JSON.stringify([definition.name, model]);
      const sum = addModelUse(uses.get(key)?.use ?? noModelUse, use);
      uses.set(key, { name: definition.name, model, use: sum });
    }
  }
  return [...uses.values()];
}

async function taskOf(stores: Stores, tenant: string, runId: string): Promise<string> {
  const rows = await stores.readTree(tenant, runId, 0, FIRST_ROWS);
  const started = rows.flatMap(({ entries }) => entries).find((entry) => entry.type === "turn.started");
  if (started?.type !== "turn.started") return "";
  const [message] = await stores.messagesById({ tenant, agentId: runId }, started.inputMessageIds.slice(0, 1));
  return message ? textOf(message.content).slice(0, LONGEST_TASK) : "";
}
