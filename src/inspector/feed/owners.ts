import type { Queues } from "../../queues/index.ts";
import type { AgentRecord } from "../../state/index.ts";
import type { OwnerRow, QueueRow } from "./answers.ts";
import { keyOf, type RunSource } from "./source.ts";
import type { Sight } from "./visible-values.ts";

const AGENTS_AT_A_TIME = 500;
/** Most agents whose lease is looked up in one answer: those with an open turn first. */
const MOST_OWNERS = 500;
const MOST_DEAD_LETTERS = 20;

/** The processes that hold the leases of a run's agents. */
export async function ownersOf(source: RunSource): Promise<OwnerRow[]> {
  const agents = (await agentsOf(source)).toSorted((one, other) => rank(one) - rank(other)).slice(0, MOST_OWNERS);
  const rows = await Promise.all(
    agents.map(async ({ agentId }): Promise<OwnerRow[]> => {
      const holder = await source.stores.holder(keyOf(source, agentId));
      if (!holder) return [];
      const { process, epoch } = holder;
      return [{ agentId, processId: process.processId, pid: process.pid, epoch }];
    }),
  );
  return rows.flat();
}

function rank({ openTurnId }: AgentRecord): number {
  return openTurnId === null ? 1 : 0;
}

async function agentsOf({ stores, tenant, runId }: RunSource): Promise<AgentRecord[]> {
  const agents: AgentRecord[] = [];
  for (let after: string | undefined; ; after = agents.at(-1)?.agentId) {
    const page = await stores.listAgents({ tenant, rootAgentId: runId, limit: AGENTS_AT_A_TIME, after });
    agents.push(...page);
    if (page.length < AGENTS_AT_A_TIME) return agents;
  }
}

export async function queueRows(queues: Queues, { namesOnly, redactor }: Sight): Promise<QueueRow[]> {
  const counts = await queues.counts(await queues.names());
  return await Promise.all(
    counts.map(async ({ queue, waiting, active, delayed, dead }) => {
      const letters = dead === 0 ? [] : await queues.deadLetters(queue, { limit: MOST_DEAD_LETTERS });
      const deadLetters = letters.map(({ jobId, job, at, cause }) => ({
        jobId,
        of: job === null ? null : job.kind === "wake" ? job.agentId : job.callId,
        at,
        code: cause.code,
        message: namesOnly ? "" : redactor.text(cause.message),
        deaths: cause.deaths,
      }));
      return { queue, waiting, active, delayed, dead, workers: await queues.workers(queue), deadLetters };
    }),
  );
}
