import { type AgentRecord, DEFAULT_TENANT, type JsonObject } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import { askJobOf } from "../ask/job.ts";
import type { CliContext } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { fileJobOf } from "../job/file-job.ts";
import { openExistingStore, withStore } from "../job/open-store.ts";
import { type Owner, ownerOf } from "../job/owner.ts";
import { isUnfinished } from "../job/roots.ts";
import { allAgents } from "../job/all-agents.ts";
import { allRequests } from "../requests/all-requests.ts";
import { formatNumberOf, formatTime } from "../view/format.ts";
import { type Column, tableLines } from "../view/table.ts";

export interface ListOptions {
  readonly store: string;
  readonly json?: boolean | undefined;
}

/** One root agent as `list` tells of it. */
export interface ListedAgent {
  readonly agentId: string;
  readonly definition: string;
  readonly status: string;
  readonly isUnfinished: boolean;
  /** Process that runs it now; null when nobody does. */
  readonly pid: number | null;
  readonly turns: number;
  readonly subagents: number;
  /** Requests of its tree that wait for somebody. */
  readonly openRequests: number;
  readonly createdAt: number;
  readonly lastActivity: number;
  /** What it was started for. */
  readonly task: string;
}

export async function listCommand({ out }: CliContext, options: ListOptions): Promise<ExitCode> {
  const listed = await withStore(openExistingStore(options.store), listedIn);
  if (options.json === true) listed.forEach((agent) => out(JSON.stringify(agent)));
  else if (listed.length === 0) out(`There are no agents in ${options.store}.`);
  else listLines(listed).forEach(out);
  return exitCodes.success;
}

async function listedIn(stores: Stores): Promise<ListedAgent[]> {
  const records = await allAgents(stores, { tenant: DEFAULT_TENANT });
  const open = await allRequests(stores, { status: "open" });
  const roots = records.filter((record) => record.parentAgentId === null);
  const listed: ListedAgent[] = [];
  for (const root of roots) {
    const owner = await ownerOf(stores, { tenant: DEFAULT_TENANT, agentId: root.agentId });
    const subagents = records.filter((record) => record.rootAgentId === root.agentId).length - 1;
    const openRequests = open.filter((request) => request.rootAgentId === root.rootAgentId).length;
    // Children in the background outlast the turn of their root.
    const goesOn = records.some(({ rootAgentId, openTurnId }) => rootAgentId === root.agentId && openTurnId !== null);
    const own = listedAgent(root, owner);
    listed.push({ ...own, isUnfinished: own.isUnfinished || goesOn, subagents, openRequests });
  }
  return listed.sort((left, right) => right.createdAt - left.createdAt);
}

function listedAgent(record: AgentRecord, owner: Owner | undefined): Omit<ListedAgent, "subagents" | "openRequests"> {
  const { agentId, definition, status, turnCount, createdAt, lastActivity, metadata } = record;
  return {
    agentId,
    definition: definition.name,
    status,
    isUnfinished: isUnfinished(record),
    pid: owner?.pid ?? null,
    turns: turnCount,
    createdAt,
    lastActivity,
    task: taskOf(metadata),
  };
}

function taskOf(metadata: JsonObject): string {
  const work = fileJobOf(metadata);
  return askJobOf(metadata)?.question ?? (work?.command === "chat" ? "(chat)" : (work?.input ?? ""));
}

const columns: readonly Column[] = [
  { title: "AGENT", maxWidth: 40 },
  { title: "DEFINITION", maxWidth: 24 },
  { title: "STATE" },
  { title: "TURNS", align: "right" },
  { title: "SUBAGENTS", align: "right" },
  { title: "LAST ACTIVITY" },
  { title: "TASK", maxWidth: 60 },
];

/** The table of `list`, and below it how many are not finished. */
export function listLines(listed: readonly ListedAgent[]): string[] {
  const rows = listed.map((agent) => [
    agent.agentId,
    agent.definition,
    stateText(agent),
    String(agent.turns),
    String(agent.subagents),
    formatTime(agent.lastActivity),
    agent.task,
  ]);
  const unfinished = listed.filter(
    (agent) => agent.isUnfinished && agent.pid === null && agent.openRequests === 0,
  ).length;
  const asking = listed.reduce((total, agent) => total + agent.openRequests, 0);
  const remarks = [
    ...(unfinished > 0 ? [`${formatNumberOf(unfinished, "agent")} to carry on: see \`resume --help\`.`] : []),
    ...(asking > 0 ? [`${formatNumberOf(asking, "request")} to decide: see \`requests\`.`] : []),
  ];
  return [...tableLines(columns, rows), ...(remarks.length > 0 ? ["", ...remarks] : [])];
}

function stateText({ isUnfinished, pid, status, openRequests }: ListedAgent): string {
  if (!isUnfinished) return status === "failed" ? "failed" : "finished";
  if (openRequests > 0) return `unfinished, waits for ${formatNumberOf(openRequests, "decision")}`;
  if (pid !== null) return `unfinished, runs (process ${pid})`;
  return status === "paused" ? "unfinished, paused" : "unfinished";
}
