import { hostname } from "node:os";
import { systemClock } from "../../base/index.ts";
import type { Queues } from "../../queues/index.ts";
import type { AgentRecord } from "../../state/index.ts";
import { type ProcessIdentity, type RegisteredProcess, signsOf } from "../../stores/index.ts";
import type { OwnerRow, ProcessRow, QueueRow } from "./answers.ts";
import type { FeedProcess } from "./messages.ts";
import { type FeedSource, agentKeyIn, type RunSource } from "./source.ts";
import type { Visibility } from "./visible-values.ts";

const AGENTS_AT_A_TIME = 500;
/** Most agents whose lease is looked up for one answer; agents with an open turn come first. */
const MOST_OWNERS = 500;
/** Most agents of a run whose leases are read to find the process that runs it. */
const MOST_ASKED = 50;
/** An idle process writes one heartbeat an hour, so a process that has ended without notice is shown for about as long. */
const AT_REST_MS = 65 * 60_000;
/** To find the agents of each process, at most `MOST_RUNS` busy runs among the newest `NEWEST_RUNS` are read. */
const NEWEST_RUNS = 200;
const MOST_RUNS = 20;
const MOST_DEAD_LETTERS = 20;
/** A process counts as silent this long after its last heartbeat, in milliseconds. By default it writes one every 3.4 s. */
const SILENT_MS = 15_000;

type RunIds = Pick<RunSource, "stores" | "tenant" | "runId">;

/** An agent with the process that holds its lease; `holder` is `undefined` if no process does. */
export interface Owner {
  readonly agent: AgentRecord;
  readonly holder: { readonly process: ProcessIdentity; readonly epoch: number } | undefined;
}

/** The owners of a run's agents; with `isBusy`, only the owners of agents with an open turn. */
export async function ownersIn(source: RunIds, { isBusy }: { readonly isBusy: boolean }): Promise<Owner[]> {
  const agents = (await agentsOf(source)).filter(({ openTurnId }) => !isBusy || openTurnId !== null);
  const first = agents.toSorted((one, other) => rank(one) - rank(other)).slice(0, MOST_OWNERS);
  return await Promise.all(
    first.map(async (agent) => ({ agent, holder: await source.stores.holder(agentKeyIn(source, agent.agentId)) })),
  );
}

/** The processes that hold the leases of a run's agents. */
export async function ownersOf(source: RunSource): Promise<OwnerRow[]> {
  const owners = await ownersIn(source, { isBusy: false });
  const known = await source.stores.processes();
  return owners.flatMap(({ agent: { agentId }, holder }) => {
    if (!holder) return [];
    const { processId, pid, state, seenAt } = feedProcessOf(holder.process, known);
    return [{ agentId, processId, pid, epoch: holder.epoch, state, seenAt }];
  });
}

/** The current state of a process. */
export function feedProcessOf(process: ProcessIdentity, known: readonly RegisteredProcess[]): FeedProcess {
  const now = Date.now();
  const { isRunning, silentMs, startedAt } = signsOf(process, known, { now, elapsed: systemClock.elapsed() });
  const { processId, pid } = process;
  // The feed's own process is alive, even if its runtime uses another clock for heartbeats.
  const isSilent = silentMs > SILENT_MS && !(isRunning === true && pid === globalThis.process.pid);
  const state = isRunning === false ? "dead" : isSilent ? "silent" : "alive";
  const isSeen = isRunning === true && !isSilent;
  const isHere = isRunning !== null;
  // Single-machine stores do not record a host; for a process on this machine, use this machine's host name.
  const host = known.find((one) => one.processId === processId)?.host ?? (isHere ? hostname() : null);
  return { processId, pid, isHere, host, startedAt, state, seenAt: isSeen ? now : now - silentMs };
}

/** The registered processes that are alive, silent for less than `AT_REST_MS`, or still hold an agent with an open turn. */
export async function processRows({ stores, tenant }: FeedSource): Promise<ProcessRow[]> {
  const known = await stores.processes();
  const roots = await stores.listAgents({ tenant, rootsOnly: true, order: "newest", limit: NEWEST_RUNS });
  const busy = roots.filter(({ openTurnId }) => openTurnId !== null).slice(0, MOST_RUNS);
  const owners = await Promise.all(
    busy.map(({ agentId: runId }) => ownersIn({ stores, tenant, runId }, { isBusy: true })),
  );
  const agents = Map.groupBy(owners.flat(), ({ holder }) => holder?.process.processId);
  return known
    .map((process): ProcessRow => {
      const own = agents.get(process.processId) ?? [];
      const shown = own.map(({ agent: { rootAgentId: runId, agentId, definition } }) => {
        return { runId, agentId, name: definition.name };
      });
      return { ...feedProcessOf(process, known), agents: shown };
    })
    .filter(({ state, seenAt, agents: own }) => {
      const isAtRest = state === "silent" && Date.now() - seenAt < AT_REST_MS;
      return own.length > 0 || state === "alive" || isAtRest;
    })
    .toSorted((one, other) => other.agents.length - one.agents.length || other.seenAt - one.seenAt);
}

/** The process that runs a busy run: it holds the root's lease or, while the root waits, the lease of another agent. */
export async function ownerOfRun(
  { stores, tenant }: FeedSource,
  ofRoot: Owner["holder"],
  busyIds: readonly string[],
): Promise<FeedProcess | undefined> {
  let holder = ofRoot;
  for (const agentId of busyIds.slice(0, MOST_ASKED)) holder ??= await stores.holder({ tenant, agentId });
  return holder && feedProcessOf(holder.process, await stores.processes());
}

function rank({ openTurnId }: AgentRecord): number {
  return openTurnId === null ? 1 : 0;
}

async function agentsOf({ stores, tenant, runId }: RunIds): Promise<AgentRecord[]> {
  const agents: AgentRecord[] = [];
  for (let after: string | undefined; ; after = agents.at(-1)?.agentId) {
    const page = await stores.listAgents({ tenant, rootAgentId: runId, limit: AGENTS_AT_A_TIME, after });
    agents.push(...page);
    if (page.length < AGENTS_AT_A_TIME) return agents;
  }
}

export async function queueRows(queues: Queues, { namesOnly, redactor }: Visibility): Promise<QueueRow[]> {
  const counts = await queues.counts(await queues.names());
  return await Promise.all(
    counts.map(async ({ queue, waiting, active, delayed, dead, waitingSince, activeSince }) => {
      const letters = dead === 0 ? [] : await queues.deadLetters(queue, { limit: MOST_DEAD_LETTERS });
      const deadLetters = letters.map(({ jobId, job, at, cause }) => ({
        jobId,
        of: job === null ? null : job.kind === "wake" ? job.agentId : job.callId,
        at,
        code: cause.code,
        message: namesOnly ? "" : redactor.text(cause.message),
        deaths: cause.deaths,
      }));
      const workers = await queues.workers(queue);
      return { queue, waiting, active, delayed, dead, waitingSince, activeSince, workers, deadLetters };
    }),
  );
}
