import { type Account, addModelUse, noModelUse, type ModelUse, spendingByAgent } from "../../budget/index.ts";
import { type AgentRecord, textOf } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";

/** What a list of runs says of a whole tree. */
export interface RunDigest {
  /** The beginning of its first input, with all that is in it; empty where there is none yet. */
  readonly task: string;
  readonly agents: number;
  readonly failedAgents: number;
  /** The agents with an open turn. */
  readonly busyIds: readonly string[];
  readonly spending: readonly DefinitionUse[];
}

/** What the agents of a definition have used of a model by their own calls. */
export interface DefinitionUse {
  readonly name: string;
  readonly model: string;
  readonly use: ModelUse;
}

interface Kept {
  readonly digest: RunDigest;
  /** The last row that it knows of. */
  readonly cursor: number;
  /** When it may be made anew, by `performance.now()`. */
  readonly staleAt: number;
}

/** The first turn of a run begins in one of its first rows. */
const FIRST_ROWS = 8;
/** More than is shown: a secret that crosses the cut has to be found. */
const LONGEST_TASK = 4_000;
const MOST_KEPT = 1_000;
/** While the run works, its digest is kept so many times as long as it took to make. */
const KEPT_TIMES = 20;

/**
 * A cache of the digests of runs. Making a digest reads the whole tree, which is too slow for a list that is read again and
 * again.
 *
 * Invariants
 * 1. A digest is not made again until its run has a new row.
 * 2. The digest of a run that works is at most `KEPT_TIMES` as old as it took to make.
 */
export class RunDigests {
  readonly #kept = new WeakMap<Stores, Map<string, Kept>>();

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
