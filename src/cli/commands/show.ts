import { traceEntriesOf } from "../../actors/index.ts";
import type { Account } from "../../budget/index.ts";
import type { AgentOverview } from "../../runtime/index.ts";
import {
  type AgentRecord,
  DEFAULT_TENANT,
  type Message,
  statusOf,
  textOf,
  type TraceEntry,
} from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import type { CliContext } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { type BudgetTree, readBudgets } from "../job/budget-tree.ts";
import { type Owner, ownerOf } from "../job/owner.ts";
import { findAgent, isUnfinished } from "../job/roots.ts";
import { type StoreOptions, storePlace, withStore } from "../job/store-place.ts";
import { readStory, type Story } from "../job/story.ts";
import { allRequests, placedRequests } from "../requests/all-requests.ts";
import { budgetLines } from "../view/budget-lines.ts";
import { columnsOf } from "../view/columns.ts";
import { formatNumberOf, formatTime } from "../view/format.ts";
import { type PlacedRequest, requestTable } from "../view/request-lines.ts";
import { historyLines, traceLines } from "../view/story-lines.ts";
import { summaryLines } from "../view/summary.ts";

import { assertNamed, showBudgetCommand } from "./show-budget.ts";

export interface ShowOptions extends StoreOptions {
  readonly json?: boolean | undefined;
  readonly full?: boolean | undefined;
  /** Only the accounts. */
  readonly budget?: boolean | undefined;
}

interface Shown {
  readonly record: AgentRecord;
  readonly owner: Owner | undefined;
  readonly tree: readonly AgentOverview[];
  readonly accounts: readonly Account[];
  readonly budgets: BudgetTree;
  /** Of the newest turn. */
  readonly trace: readonly TraceEntry[];
  readonly messages: readonly Message[];
  /** Of it and all below it, decided ones too; oldest first. */
  readonly requests: readonly PlacedRequest[];
}

/** Everything about one agent, read from the store: whoever runs it meanwhile is not disturbed. */
export async function showCommand(
  context: CliContext,
  text: string | undefined,
  options: ShowOptions,
): Promise<ExitCode> {
  if (options.budget === true) return await showBudgetCommand(context, text, options);
  assertNamed(text);
  const { out } = context;
  const shown = await withStore(storePlace(context, options), "openExisting", (stores) => gather(stores, text));
  if (options.json === true) out(JSON.stringify(jsonOf(shown)));
  else linesOf(shown, options.full === true, columnsOf(context)).forEach(out);
  return exitCodes.success;
}

async function gather(stores: Stores, text: string): Promise<Shown> {
  const record = await findAgent(stores, text);
  const key = { tenant: DEFAULT_TENANT, agentId: record.agentId };
  const story = await readStory(stores, record.agentId);
  const tree = subtreeOf(story.agents, record.agentId);
  const members = new Set([record.agentId, ...tree.map((agent) => agent.agentId)]);
  const requests = await allRequests(stores, { rootAgentId: record.rootAgentId });
  const own = requests.filter((request) => members.has(request.agentId));
  return {
    record,
    owner: await ownerOf(stores, key),
    tree,
    accounts: story.accounts,
    budgets: await readBudgets(stores, record),
    trace: traceOf(story, record.agentId),
    messages: await stores.messages(key),
    requests: await placedRequests(stores, own),
  };
}

/** An agent and all below it; a parent appears before its children. */
function subtreeOf(agents: readonly AgentOverview[], agentId: string): AgentOverview[] {
  const within = new Set<string>();
  return agents.filter(({ agentId: id, parentAgentId }) => {
    const isWithin = id === agentId || (parentAgentId !== null && within.has(parentAgentId));
    if (isWithin) within.add(id);
    return isWithin;
  });
}

function traceOf({ rows, messages }: Story, agentId: string): TraceEntry[] {
  const entries = rows.flatMap((row) => (row.agentId === agentId ? row.entries : []));
  const started = entries.findLast((entry) => entry.type === "turn.started");
  if (started?.type !== "turn.started") return [];
  const ofTurn = entries.filter((entry) => "turnId" in entry && entry.turnId === started.turnId);
  const prompt = started.inputMessageIds.map((id) => textOf(messages.get(id)?.content ?? "")).join("\n");
  return traceEntriesOf(ofTurn, prompt, (id) => messages.get(id));
}

function linesOf(shown: Shown, isFull: boolean, width: number): string[] {
  const { record, owner, tree, accounts, budgets, trace, messages, requests } = shown;
  const { agentId, definition, openTurnId, createdAt, turnCount } = record;
  const now = Date.now();
  const turn = openTurnId === null ? `${formatNumberOf(turnCount, "turn")} ended` : `turn ${openTurnId} is open`;
  const run = owner === undefined ? "nobody runs it now" : `process ${owner.pid} runs it`;
  return [
    `${agentId}: ${definition.name}, ${statusOf(record)}, ${turn}, ${run}; made ${formatTime(createdAt)}`,
    ...section("Tree", summaryLines(tree, { accounts, now })),
    ...section("Accounts", budgetLines({ ...budgets, now, width })),
    ...(requests.length === 0 ? [] : section("Requests", requestTable(requests, now, true))),
    ...section("Trace of the newest turn", traceLines(trace, isFull)),
    ...section("History", historyLines(messages, isFull)),
  ];
}

function section(title: string, lines: readonly string[]): string[] {
  return ["", `${title}:`, ...(lines.length === 0 ? ["  nothing yet"] : lines)];
}

function jsonOf({ record, owner, tree, accounts, trace, messages, requests: placed }: Shown) {
  const requests = placed.map(({ request, path }) => ({ ...request, path }));
  // The checkpoint is the machine's own business, and large.
  const { checkpoint: _own, ...agent } = record;
  return {
    agent,
    isUnfinished: isUnfinished(record),
    pid: owner?.pid ?? null,
    tree,
    accounts,
    trace,
    messages,
    requests,
  };
}
