import { spendingByAgent, type Account } from "../../budget/index.ts";
import { InvalidInputError, NotFoundError } from "../../errors/index.ts";
import {
  meantCall,
  type AgentOverview,
  type AgentRecord,
  DEFAULT_TENANT,
  entriesOfTurn,
  type Entry,
  fileMark,
  type Message,
  promptOf,
  statusOf,
  type StubReport,
  stubReportOf,
  textOf,
  traceEntriesOf,
  type TraceEntry,
} from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";
import type { CliContext } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../failure.ts";
import { type AgentStatus, isTreeUnfinished, lastTurnIn, statusText } from "../job/agent-status.ts";
import { rootsByAge, findAgent, ownerOf } from "../job/find-agent.ts";
import { allRequests, placedRequests } from "../job/find-request.ts";
import { type StoreOptions, storeLocation, withStore } from "../job/store-location.ts";
import { type BudgetTree, budgetsOf, readBudgets, readStory } from "../job/story.ts";
import { summaryLines } from "../view/agent-rows.ts";
import { budgetLines, budgetRows } from "../view/budget-lines.ts";
import { forkText, formatCost, formatCount, formatDuration, formatNumberOf, formatTime } from "../view/format.ts";
import { type PlacedRequest, requestTable } from "../view/request-lines.ts";
import { columnsOf } from "../view/table.ts";
import { oneLine, printable } from "../view/terminal-text.ts";
import { truncate, wrapText } from "../view/text-width.ts";
import { showSummaryCommand } from "./show-summary.ts";

export interface ShowOptions extends StoreOptions {
  readonly json?: boolean | undefined;
  readonly full?: boolean | undefined;
  /** Shows only the accounts. */
  readonly budget?: boolean | undefined;
  /** Shows only the summary of the run. */
  readonly summary?: boolean | undefined;
}

interface Shown {
  readonly record: AgentRecord;
  readonly status: AgentStatus;
  readonly tree: readonly AgentOverview[];
  readonly accounts: readonly Account[];
  readonly budgets: BudgetTree;
  /** Trace of the newest turn. */
  readonly trace: readonly TraceEntry[];
  readonly messages: readonly Message[];
  /** Requests of the agent and its subagents, including decided ones; oldest first. */
  readonly requests: readonly PlacedRequest[];
  /** How the stubs of its session were used; `undefined` without stubs. */
  readonly stubs: StubReport | undefined;
}

/** Shows everything that is stored about one agent. Another process may run it meanwhile. */
export async function showCommand(
  context: CliContext,
  text: string | undefined,
  options: ShowOptions,
): Promise<ExitCode> {
  if (options.budget === true) return await showBudgetCommand(context, text, options);
  assertNamed(text);
  if (options.summary === true) return await showSummaryCommand(context, text, options);
  const { out } = context;
  const shown = await withStore(storeLocation(context, options), "openExisting", (stores) =>
    gather(stores, text, options.json === true),
  );
  if (options.json === true) out(JSON.stringify(jsonOf(shown)));
  else linesOf(shown, options.full === true, columnsOf(context)).forEach(out);
  return exitCodes.success;
}

/** Only JSON output contains the texts of the whole tree. */
async function gather(stores: Stores, text: string, hasTexts: boolean): Promise<Shown> {
  const record = await findAgent(stores, text);
  const key = { tenant: DEFAULT_TENANT, agentId: record.agentId };
  const story = await readStory(stores, record.agentId, { hasTexts });
  const tree = subtreeOf(story.agents, record.agentId);
  const messages = await stores.messages(key);
  const members = new Set([record.agentId, ...tree.map((agent) => agent.agentId)]);
  const requests = await allRequests(stores, { rootAgentId: record.rootAgentId });
  const own = requests.filter((request) => members.has(request.agentId));
  const owner = await ownerOf(stores, key);
  const below = story.records.filter(({ agentId }) => members.has(agentId));
  return {
    record,
    status: {
      status: statusOf(record),
      isUnfinished: isTreeUnfinished(record, below),
      pid: owner?.pid ?? null,
      openRequests: own.filter(({ status }) => status === "open").length,
      lastTurn: lastTurnIn(story.entries),
    },
    tree,
    accounts: story.accounts,
    budgets: budgetsOf(record, story),
    trace: traceOf(story.entries, messages),
    messages,
    requests: await placedRequests(stores, own),
    stubs: await stubReport(stores, record),
  };
}

async function stubReport(stores: Stores, { rootAgentId, stubs }: AgentRecord): Promise<StubReport | undefined> {
  if (!stubs) return undefined;
  return stubReportOf(stubs, await stores.readTree(DEFAULT_TENANT, rootAgentId, 0, Number.MAX_SAFE_INTEGER));
}

/** An agent and its subagents. Requires that parents come before their children. */
function subtreeOf(agents: readonly AgentOverview[], agentId: string): AgentOverview[] {
  const within = new Set<string>();
  return agents.filter(({ agentId: id, parentAgentId }) => {
    const isWithin = id === agentId || (parentAgentId !== null && within.has(parentAgentId));
    if (isWithin) within.add(id);
    return isWithin;
  });
}

function traceOf(entries: readonly Entry[], messages: readonly Message[]): TraceEntry[] {
  const ofTurn = entriesOfTurn(entries);
  const byId = new Map(messages.map((message) => [message.id, message]));
  const prompt = promptOf(ofTurn, (id) => textOf(byId.get(id)?.content ?? ""));
  return traceEntriesOf(ofTurn, prompt, (id) => byId.get(id));
}

function linesOf(shown: Shown, isFull: boolean, width: number): string[] {
  const { record, status, tree, accounts, budgets, trace, messages, requests, stubs } = shown;
  const { agentId, definition, openTurnId, createdAt, turnCount } = record;
  const now = Date.now();
  const wrapped = (lines: readonly string[]): string[] => lines.flatMap((line) => wrapText(line, width));
  const turn = openTurnId === null ? `${formatNumberOf(turnCount, "turn")} ended` : `turn ${openTurnId} is open`;
  const state = [statusText(status), turn, ...(status.pid === null ? ["no process runs it"] : [])].join(", ");
  return [
    ...wrapped([`${agentId}: ${definition.name}, ${state}; made ${formatTime(createdAt)}`, ...originLines(record)]),
    ...section("Tree", summaryLines(tree, { accounts, now }, width)),
    ...section("Accounts", budgetLines({ ...budgets, now, width })),
    ...(requests.length === 0 ? [] : section("Requests", requestTable(requests, { now, width, withState: true }))),
    ...(stubs === undefined ? [] : section("Stubs, in the place of all tools", wrapped(stubLines(stubs, isFull)))),
    ...section("Trace of the newest turn", wrapped(traceLines(trace, isFull))),
    ...section("History", wrapped(historyLines(messages, isFull))),
  ];
}

/** Where a fork left its origin. */
function originLines({ forkedFrom }: AgentRecord): string[] {
  return forkedFrom ? [`A fork of ${forkText(forkedFrom)}.`] : [];
}

function section(title: string, lines: readonly string[]): string[] {
  return ["", `${title}:`, ...(lines.length === 0 ? ["  nothing yet"] : lines)];
}

function jsonOf({ record, status, tree, accounts, trace, messages, requests: placed, stubs }: Shown) {
  const requests = placed.map(({ request, path }) => ({ ...request, path }));
  // The checkpoint is internal, and large.
  const { checkpoint: _own, ...agent } = record;
  return {
    agent: { ...agent, status: status.status },
    isUnfinished: status.isUnfinished,
    lastTurn: status.lastTurn,
    pid: status.pid,
    tree,
    accounts,
    trace,
    messages,
    requests,
    ...(stubs === undefined ? {} : { stubs }),
  };
}

/** A line for each stub of the session, and for each call that none of them answered. */
function stubLines({ stubs, mismatches }: StubReport, isFull: boolean): string[] {
  return [
    ...stubs.map(({ tool, agent, arguments: args, output, error, times, used }, index) => {
      const of = agent === undefined ? "" : ` of ${agent}`;
      const shown = args === undefined ? "" : ` ${JSON.stringify(args)}`;
      const result = error === undefined ? JSON.stringify(output ?? null) : `error: ${error}`;
      const most = times === undefined ? "" : ` of ${times}`;
      return `${index + 1}. ${clipped(`${tool}${of}${shown} → ${result}`, isFull)}; used ${used}${most}`;
    }),
    ...mismatches.map(({ message }) => clipped(message, isFull)),
  ];
}

const shortText = 160;
const shortLines = 12;

/** Messages as text. Long ones are cut unless `isFull`. */
export function historyLines(messages: readonly Message[], isFull: boolean): string[] {
  return messages.flatMap((message) => {
    const text = printable(textOf(message.content)).trim();
    const lines = text === "" ? [] : text.split("\n");
    const shown = isFull ? lines : lines.slice(0, shortLines).map((line) => truncate(line, shortText));
    const left = lines.length - shown.length;
    const calls = message.role === "assistant" ? (message.toolCalls ?? []) : [];
    return [
      `[${titleOf(message)}]`,
      ...shown.map((line) => `  ${line}`.trimEnd()),
      ...mediaLines(message),
      ...(left > 0 ? [`  … ${formatNumberOf(left, "more line")}; --full shows all`] : []),
      ...calls.map(meantCall).map((call) => `  → ${call.name} ${clipped(call.arguments, isFull)}`),
      ...sourceLines(message, isFull),
    ];
  });
}

/** Most sources of a message that are shown without `--full`. */
const shortSources = 5;

function sourceLines(message: Message, isFull: boolean): string[] {
  const sources = message.role === "assistant" ? (message.sources ?? []) : [];
  const shown = isFull ? sources : sources.slice(0, shortSources);
  const left = sources.length - shown.length;
  return [
    ...shown.map(({ type, id, title, url }) => {
      const parts = [title, url ?? (title === undefined ? id : undefined)].filter((part) => part !== undefined);
      return `  source: ${clipped(printable(parts.length === 0 ? type : parts.join(", ")), isFull)}`;
    }),
    ...(left > 0 ? [`  … ${formatNumberOf(left, "more source")}; --full shows all`] : []),
  ];
}

/** The images and files of a message. The text of a tool's result has marks of them already. */
function mediaLines({ role, content }: Message): string[] {
  if (typeof content === "string" || role === "tool") return [];
  return content.flatMap((part) => {
    if (part.type === "text") return [];
    return [`  ${part.type === "file" ? oneLine(fileMark(part)) : "[image]"}`];
  });
}

function titleOf(message: Message): string {
  if (message.role === "tool") return message.isError === true ? "tool, failed" : "tool";
  return message.origin === message.role || message.origin === "model"
    ? message.role
    : `${message.role}, ${message.origin}`;
}

function clipped(text: string, isFull: boolean): string {
  return isFull ? oneLine(text) : truncate(oneLine(text), shortText);
}

/** The trace of a turn, a line per entry, with times from the turn's start. */
export function traceLines(trace: readonly TraceEntry[], isFull: boolean): string[] {
  const startedAt = trace[0]?.at ?? 0;
  return trace.map((entry) => {
    const time = formatDuration(Math.max(0, entry.at - startedAt)).padStart(8);
    return `${time}  ${traceText(entry, isFull)}`;
  });
}

function traceText(entry: TraceEntry, isFull: boolean): string {
  if (entry.type === "user_input") return `turn ${entry.turn}: ${clipped(entry.prompt, isFull)}`;
  const took = formatDuration(entry.durationMs);
  if (entry.type === "llm_call") {
    const { inputTokens, outputTokens, costMicros } = entry.usage;
    const calls = formatNumberOf(entry.toolCallsCount, "tool call");
    const tokens = `${formatCount(inputTokens)} + ${formatCount(outputTokens)} tokens`;
    return `step ${entry.step}: ${entry.model}, ${tokens}, ${formatCost(costMicros)}, ${took}, ${calls}`;
  }
  const outcome = entry.status === "success" ? "" : ` → ${entry.status}: ${clipped(entry.error ?? "", isFull)}`;
  return `step ${entry.step}: ${entry.name} ${clipped(JSON.stringify(entry.arguments), isFull)}, ${took}${outcome}`;
}

export interface ShowBudgetOptions extends StoreOptions {
  readonly json?: boolean | undefined;
}

/** Shows the accounts of a tree; without an id, those of the newest root agent. */
export async function showBudgetCommand(
  context: CliContext,
  text: string | undefined,
  options: ShowBudgetOptions,
): Promise<ExitCode> {
  const place = storeLocation(context, options);
  const { top, tree } = await withStore(place, "openExisting", async (stores) => {
    const found = text === undefined ? await newestRoot(stores, place.name) : await findAgent(stores, text);
    return { top: found, tree: await readBudgets(stores, found) };
  });
  const now = Date.now();
  if (options.json === true) context.out(JSON.stringify(budgetJson(top, tree, now)));
  else budgetLines({ ...tree, now, width: columnsOf(context) }).forEach(context.out);
  return exitCodes.success;
}

/** Throws `InvalidInputError` without an id, because only `--budget` has a default agent. */
export function assertNamed(agentId: string | undefined): asserts agentId is string {
  if (agentId !== undefined) return;
  throw new InvalidInputError("missing required argument 'agentId'; with --budget it may be left out");
}

async function newestRoot(stores: Stores, placeName: string): Promise<AgentRecord> {
  for await (const newest of rootsByAge(stores, 1)) return newest;
  throw new NotFoundError(`there is no agent in ${placeName} yet`);
}

function budgetJson(top: AgentRecord, { agents, accounts, own }: BudgetTree, now: number) {
  const rows = budgetRows(accounts, now);
  const spending = spendingByAgent(accounts);
  const names = new Map(agents.map(({ agentId, definition }) => [agentId, definition.name]));
  return {
    agentId: top.agentId,
    accounts: accounts.map(({ id, agentId, turnId, parentId, models, ...account }) => ({
      id,
      agentId,
      name: names.get(agentId) ?? null,
      turnId,
      parentId,
      isActive: account.activeCount > 0,
      limits: rows.flatMap((row) => {
        if (row.account.id !== id) return [];
        const { limit, used, reserved, unconfirmed, max } = row;
        return [{ limit, used, reserved, unconfirmed, max }];
      }),
      models,
    })),
    agents: agents.map(({ agentId, parentAgentId, definition }) => {
      const spent = { own: own.get(agentId) ?? {}, tree: spending.get(agentId)?.tree ?? {} };
      return { agentId, parentAgentId, name: definition.name, ...spent };
    }),
  };
}
