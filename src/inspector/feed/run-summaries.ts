import { textOf } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";

/** What a list of runs says of a whole tree. */
export interface RunSummary {
  /** The beginning of its first input, with all that is in it; empty where there is none yet. */
  readonly task: string;
  readonly agents: number;
  readonly failedAgents: number;
  /** The agents with an open turn. */
  readonly busyIds: readonly string[];
}

interface Kept {
  readonly summary: RunSummary;
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
/** A summary that took long to make is kept so many times as long, while the run goes on. */
const KEPT_TIMES = 20;

/**
 * The summaries of the runs in some stores. Making one reads the whole tree, which a list that is asked for again and again
 * must not do.
 *
 * Invariants
 * 1. The summary of a run that has got no row since is not made again.
 * 2. Of a run that goes on it is at most `KEPT_TIMES` as old as it took to make.
 */
export class RunSummaries {
  readonly #kept = new WeakMap<Stores, Map<string, Kept>>();

  async of(stores: Stores, tenant: string, runId: string): Promise<RunSummary> {
    const ofStores = this.#kept.get(stores) ?? new Map<string, Kept>();
    this.#kept.set(stores, ofStores);
    const key = JSON.stringify([tenant, runId]);
    const known = ofStores.get(key);
    if (known && performance.now() < known.staleAt) return known.summary;
    if (known && (await stores.readTree(tenant, runId, known.cursor, 1)).length === 0) return known.summary;
    const begun = performance.now();
    const { cursor = 0, agents = [] } = (await stores.treeHead(tenant, runId)) ?? {};
    const task =
      known !== undefined && known.summary.task !== "" ? known.summary.task : await taskOf(stores, tenant, runId);
    const failedAgents = agents.filter(({ status, error }) => status === "failed" || error !== null).length;
    const busyIds = agents.flatMap(({ agentId, openTurnId }) => (openTurnId === null ? [] : [agentId]));
    const summary = { task, agents: agents.length, failedAgents, busyIds };
    const ended = performance.now();
    ofStores.delete(key);
    ofStores.set(key, { summary, cursor, staleAt: ended + (ended - begun) * KEPT_TIMES });
    const [oldest] = ofStores.keys();
    if (ofStores.size > MOST_KEPT && oldest !== undefined) ofStores.delete(oldest);
    return summary;
  }
}

async function taskOf(stores: Stores, tenant: string, runId: string): Promise<string> {
  const rows = await stores.readTree(tenant, runId, 0, FIRST_ROWS);
  const started = rows.flatMap(({ entries }) => entries).find((entry) => entry.type === "turn.started");
  if (started?.type !== "turn.started") return "";
  const [message] = await stores.messagesById({ tenant, agentId: runId }, started.inputMessageIds.slice(0, 1));
  return message ? textOf(message.content).slice(0, LONGEST_TASK) : "";
}
