import { isDeepStrictEqual } from "node:util";
import type { AgentRequest, RequestKind, RequestVerdict } from "../../state/index.ts";
import { commandLine, type Invocation } from "../cli-context.ts";
import { shortAgentId, formatRunningTime } from "./format.ts";
import { type Column, tableLines } from "./table.ts";
import { oneLine, printable } from "./terminal-text.ts";

/** A request with the path of agents from the root to its agent: `lead ask-mibodu › reader ~3fa9c1`. */
export interface PlacedRequest {
  readonly request: AgentRequest;
  readonly path: string;
}

const baseColumns: readonly Column[] = [
  { title: "REQUEST" },
  { title: "AGE", align: "right", leaveOut: 3 },
  { title: "KIND", leaveOut: 2 },
  { title: "AGENT", maxWidth: 60, minWidth: 24, leaveOut: 5 },
  { title: "TOOL", maxWidth: 24, leaveOut: 1 },
  { title: "ASKS", maxWidth: 60, minWidth: 24 },
  { title: "EXPIRES", leaveOut: 4 },
];

interface RequestTableOptions {
  /** Milliseconds since the epoch. */
  readonly now: number;
  /** Maximum width of a line; a narrow table has fewer columns. */
  readonly width: number;
  /** Adds a state column for lists with decided requests. Default false. */
  readonly withState?: boolean;
}

/** Requests as a table. */
export function requestTable(
  placed: readonly PlacedRequest[],
  { now, width, withState = false }: RequestTableOptions,
): string[] {
  const rows = placed.map(({ request, path }) => [
    request.requestId,
    formatRunningTime(now - request.openedAt),
    request.kind,
    path,
    request.name,
    request.prompt,
    expiryText(request, now),
    ...(withState ? [stateText(request)] : []),
  ]);
  const columns = withState ? [...baseColumns, { title: "STATE", maxWidth: 60, minWidth: 12 }] : baseColumns;
  return tableLines(columns, rows, width);
}

function expiryText({ expiresAt, status }: AgentRequest, now: number): string {
  if (expiresAt === null) return "never";
  if (status !== "open") return "-";
  return expiresAt <= now ? "now" : `in ${formatRunningTime(expiresAt - now)}`;
}

/** The text of each verdict. */
export const verdictTexts: Readonly<Record<RequestVerdict, string>> = {
  approved: "approved",
  edited: "approved with other arguments",
  rejected: "rejected",
  answered: "answered",
  provided: "provided",
  expired: "expired",
};

/** The state of a request: `open`, `approved by anna`, `rejected by anna: too much`, `expired`, `closed`. */
export function stateText({ status, decision }: Pick<AgentRequest, "status" | "decision">): string {
  if (status === "open") return "open";
  if (decision === null) return "closed, its turn continued without it";
  const by = decision.by === null ? "" : ` by ${oneLine(decision.by)}`;
  const reason = decision.reason === null || decision.reason === "" ? "" : `: ${oneLine(decision.reason)}`;
  return `${verdictTexts[decision.verdict]}${by}${reason}`;
}

const askings: Readonly<Record<RequestKind, (name: string) => string>> = {
  approval: (name) => `asks for approval of ${name}`,
  client: (name) => `asks you to run ${name}`,
  question: () => "asks",
  auth: (name) => `needs credentials for ${name}`,
  budget: (name) => `asks for more budget (${name})`,
};

type Asked = Pick<
  AgentRequest,
  "requestId" | "agentId" | "agentName" | "kind" | "name" | "arguments" | "prompt" | "expiresAt"
>;

/** The lines of a request. They always include the arguments, because a tool's prompt may omit them. */
export function askingLines(request: Asked): string[] {
  const { requestId, agentId, agentName, kind, name, prompt } = request;
  const args = JSON.stringify(request.arguments);
  const isSaid = kind === "question" || prompt === `${name}(${args})` || isDeepStrictEqual(request.arguments, {});
  const expiry = request.expiresAt === null ? "" : `, until ${new Date(request.expiresAt).toISOString()}`;
  return [
    `${agentName} ${shortAgentId(agentId)} ${askings[kind](name)} (${requestId}${expiry}):`,
    ...printable(prompt)
      .split("\n")
      .map((line) => `  ${line}`.trimEnd()),
    ...(isSaid ? [] : [`  arguments: ${printable(args)}`]),
  ];
}

/** The command lines that decide a request. */
export function decidingLines(
  { requestId, kind, isAsked }: Pick<AgentRequest, "requestId" | "kind" | "isAsked">,
  invocation: Invocation,
  store: readonly string[],
): string[] {
  const line = (command: string, ...words: string[]): string =>
    commandLine(invocation, command, [requestId, ...words, ...store]);
  if (kind === "approval" || kind === "budget") return [line("approve"), line("reject", "--reason", "why")];
  if (kind === "auth" && isAsked === true) return [line("approve"), line("reject", "--reason", "why")];
  if (kind === "auth") return [`(its program continues with agent.resume({ auth }))`, line("reject")];
  return [line("answer", kind === "question" ? "your answer" : "its result"), line("reject", "--reason", "why")];
}

/** The command lines with which another person can decide a request, with remarks on their use. */
export function othersDecidingLines(
  request: Pick<AgentRequest, "requestId" | "kind" | "isAsked">,
  invocation: Invocation,
  { words, remarks }: { readonly words: readonly string[]; readonly remarks: readonly string[] },
): string[] {
  return [...decidingLines(request, invocation, ["--by", "NAME", ...words]), ...remarks];
}

/** All open requests of a waiting job, with the commands that decide them. */
export function waitingLines(
  requests: readonly AgentRequest[],
  invocation: Invocation,
  store: readonly string[],
): string[] {
  return requests.flatMap((request) => [
    ...askingLines(request),
    ...decidingLines(request, invocation, store).map((line) => `    ${line}`),
  ]);
}

const waits: Readonly<Record<RequestKind, string>> = {
  approval: "approve ",
  client: "run ",
  question: "answer ",
  auth: "",
  budget: "approve more budget: ",
};

/** A request in its agent's row: `waits: approve pay({"to":"Ann"})`. */
export function waitText({ kind, prompt }: Pick<AgentRequest, "kind" | "prompt">): string {
  return `waits: ${waits[kind]}${oneLine(prompt)}`;
}
