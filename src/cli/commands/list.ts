import { type AgentRecord, DEFAULT_TENANT, type ForkedFrom, type JsonObject, statusOf } from "../../state/index.ts";
import { formatAgentCursor, type Stores } from "../../stores/index.ts";
import { type CliContext, commandLine } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../failure.ts";
import { type AgentStatus, isTreeUnfinished, lastTurnOf, statusText } from "../job/agent-status.ts";
import { ownerOf, allAgents } from "../job/find-agent.ts";
import { allRequests } from "../job/find-request.ts";
import { askJobOf, fileJobOf } from "../job/job.ts";
import { type StoreOptions, storeLocation, withStore } from "../job/store-location.ts";
import { pageSize } from "../options.ts";
import { forkText, formatNumberOf, formatTime } from "../view/format.ts";
import { type Column, columnsOf, tableLines } from "../view/table.ts";

export interface ListOptions extends StoreOptions {
  readonly limit?: number | undefined;
  readonly after?: string | undefined;
  readonly json?: boolean | undefined;
}

/** A row of `list`: one root agent. */
export interface ListedAgent extends AgentStatus {
  readonly agentId: string;
  readonly definition: string;
  readonly turns: number;
  readonly subagents: number;
  readonly createdAt: number;
  readonly lastActivity: number;
  /** The question or input that started it. */
  readonly task: string;
  /** Where it left its origin, if it is a fork. */
  readonly forkedFrom?: ForkedFrom;
  /** Its tools do not run: stubs give their results. */
  readonly isStubbed?: true;
  /** For `--after`: the next page starts after this row. */
  readonly cursor: string;
}

export async function listCommand(context: CliContext, options: ListOptions): Promise<ExitCode> {
  const { out, note, invocation } = context;
  const place = storeLocation(context, options);
  const { limit = pageSize.usual, after } = options;
  const { listed, hasMore } = await withStore(place, "openExisting", (stores) => agentPage(stores, limit, after));
  if (options.json === true) listed.forEach((agent) => out(JSON.stringify(agent)));
  else if (listed.length > 0) listLines(listed, columnsOf(context)).forEach(out);
  else
    out(after === undefined ? `There are no agents in ${place.name}.` : `There are no more agents in ${place.name}.`);
  const last = listed.at(-1);
  if (!hasMore || last === undefined) return exitCodes.success;
  const words = [...(options.limit === undefined ? [] : ["--limit", String(limit)]), "--after", last.cursor];
  const more = `More: ${commandLine(invocation, "list", [...words, ...place.words])}`;
  if (options.json === true) [more, ...place.remarks].forEach(note);
  else ["", more, ...place.remarks].forEach(out);
  return exitCodes.success;
}

export interface AgentPage {
  readonly listed: readonly ListedAgent[];
  readonly hasMore: boolean;
}

/** A page of root agents, newest first. Reads only the agents of the page, their trees, and one further agent. */
export async function agentPage(stores: Stores, limit: number, after: string | undefined): Promise<AgentPage> {
  const filter = { tenant: DEFAULT_TENANT, rootsOnly: true, order: "newest", limit: limit + 1, after } as const;
  const roots = await stores.listAgents(filter);
  const listed = await Promise.all(roots.slice(0, limit).map((root) => listedAgent(stores, root)));
  return { listed, hasMore: roots.length > limit };
}

async function listedAgent(stores: Stores, record: AgentRecord): Promise<ListedAgent> {
  const { agentId, definition, turnCount, createdAt, lastActivity, metadata } = record;
  const [lastTurn, owner, members, open] = await Promise.all([
    lastTurnOf(stores, record),
    ownerOf(stores, { tenant: DEFAULT_TENANT, agentId }),
    allAgents(stores, { tenant: DEFAULT_TENANT, rootAgentId: agentId }),
    allRequests(stores, { rootAgentId: agentId, status: "open" }),
  ]);
  return {
    agentId,
    definition: definition.name,
    status: statusOf(record),
    isUnfinished: isTreeUnfinished(record, members),
    pid: owner?.pid ?? null,
    turns: turnCount,
    subagents: Math.max(0, members.length - 1),
    openRequests: open.length,
    lastTurn,
    createdAt,
    lastActivity,
    task: taskOf(metadata),
    ...(record.forkedFrom ? { forkedFrom: record.forkedFrom } : {}),
    ...(record.stubs ? { isStubbed: true as const } : {}),
    cursor: formatAgentCursor(record),
  };
}

function taskOf(metadata: JsonObject): string {
  const work = fileJobOf(metadata);
  return askJobOf(metadata)?.question ?? (work?.command === "chat" ? "(chat)" : (work?.input ?? ""));
}

const columns: readonly Column[] = [
  { title: "AGENT", maxWidth: 40 },
  { title: "DEFINITION", maxWidth: 24, leaveOut: 2 },
  { title: "STATE", minWidth: 24 },
  { title: "TURNS", align: "right", leaveOut: 3 },
  { title: "SUBAGENTS", align: "right", leaveOut: 1 },
  { title: "LAST ACTIVITY", leaveOut: 4 },
  { title: "TASK", maxWidth: 60, minWidth: 16 },
];

/** The task; of a fork its origin. */
function workText({ isStubbed, forkedFrom, task }: ListedAgent): string {
  const work = forkedFrom ? `fork of ${forkText(forkedFrom)}` : task;
  if (!isStubbed) return work;
  return work === "" ? "stubbed" : `stubbed; ${work}`;
}

/** The table of `list`, followed by the number of unfinished agents and open requests. */
export function listLines(listed: readonly ListedAgent[], width: number): string[] {
  const rows = listed.map((agent) => [
    agent.agentId,
    agent.definition,
    statusText(agent),
    String(agent.turns),
    String(agent.subagents),
    formatTime(agent.lastActivity),
    workText(agent),
  ]);
  const unfinished = listed.filter(
    (agent) => agent.isUnfinished && agent.pid === null && agent.openRequests === 0,
  ).length;
  const asking = listed.reduce((total, agent) => total + agent.openRequests, 0);
  const remarks = [
    ...(unfinished > 0 ? [`${formatNumberOf(unfinished, "agent")} to resume: see \`resume --help\`.`] : []),
    ...(asking > 0 ? [`${formatNumberOf(asking, "request")} to decide: see \`requests\`.`] : []),
  ];
  return [...tableLines(columns, rows, width), ...(remarks.length > 0 ? ["", ...remarks] : [])];
}
