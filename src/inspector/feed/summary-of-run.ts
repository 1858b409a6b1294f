import { isBusy } from "../run-model/agent-moment.ts";
import { lostAgents } from "../run-model/lost-agents.ts";
import { RunLog, type RunRow } from "../run-model/run-log.ts";
import { RunMoments } from "../run-model/run-moments.ts";
import { runSummary } from "../run-model/run-summary.ts";
import type { RunSummary } from "../run-model/summary-facts.ts";
import { Timeline } from "../run-model/timeline.ts";
import { feedProcessOf, ownersIn } from "./owners.ts";
import { runHead } from "./runs.ts";
import type { RunSource } from "./source.ts";
import { feedRowOf, type Visibility } from "./visible-values.ts";

const ROWS_AT_A_TIME = 500;

/** Reads the whole journal of a run once and summarizes it with the folds of the page. */
export async function summaryOfRun(source: RunSource, sight: Visibility): Promise<RunSummary> {
  const { stores, tenant, runId } = source;
  const { agents, accounts, run } = await runHead(source, sight);
  const log = new RunLog();
  log.addAgents(agents);
  const moments = new RunMoments(log);
  moments.learn(accounts);
  for (let isMore = true; isMore; ) {
    const rows = await stores.readTree(tenant, runId, log.head, ROWS_AT_A_TIME);
    log.append(rows.map((row) => feedRowOf(row, sight)) as unknown as readonly RunRow[]);
    isMore = rows.length === ROWS_AT_A_TIME;
  }
  const timeline = new Timeline(log);
  timeline.update();
  const moment = moments.at(log.length);
  const [owners, known] = await Promise.all([ownersIn(source, { isBusy: true }), stores.processes()]);
  const holders = owners.flatMap(({ holder }) => (holder ? [feedProcessOf(holder.process, known)] : []));
  const lost = lostAgents(log.agents, moment.agents, {
    processes: new Map(holders.map((process) => [process.processId, process])),
    ofAgents: new Map(owners.map(({ agent, holder }) => [agent.agentId, holder?.process.processId ?? null])),
  });
  const isBusyNow = lost.size === 0 && moment.agents.some((agent) => agent !== undefined && isBusy(agent));
  const lastSeen = Math.max(log.endedAt, ...[...lost.values()].map(({ seenAt }) => seenAt));
  return runSummary({ log, timeline, moment, until: isBusyNow ? Date.now() : lastSeen, lost, task: run.task });
}
