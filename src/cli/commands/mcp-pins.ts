import { checkMcpPins, type McpServerReport, pinMcp, type McpToolReport } from "../../mcp/index.ts";
import type { CliContext } from "../cli-context.ts";
import { type ExitCode, exitCodes, failureOf } from "../failure.ts";
import { configFile, type McpConfigWords, warnOfUnpinned } from "../mcp/config-words.ts";
import { loginTokens } from "../mcp/login-tokens.ts";
import { formatNumberOf } from "../view/format.ts";
import { type Column, tableLines } from "../view/table.ts";
import { oneLine, printable } from "../view/terminal-text.ts";

export interface McpPinsOptions extends McpConfigWords {
  readonly json?: boolean | undefined;
}

/** Lists the tools of all servers. Exit code 1 if a server cannot be used. */
export async function mcpListCommand(context: CliContext, options: McpPinsOptions): Promise<ExitCode> {
  const reports = await checkMcpPins(configFile(options), pinOptions(context, options, []));
  if (options.json === true) return printJson(context, reports, isUsable);
  if (reports.length === 0) context.out("There are no servers in the file.");
  const rows = reports.flatMap(({ server, tools }) => tools.map((tool) => toolRow(server, tool)));
  if (rows.length > 0) tableLines(columns, rows).forEach(context.out);
  for (const report of reports) {
    if (report.error !== undefined) noteBroken(context, report);
    else if (report.tools.length === 0) context.out(`${oneLine(report.server)} has no tools.`);
  }
  return reports.every(isUsable) ? exitCodes.success : exitCodes.failure;
}

/** Shows the differences from the lock files, and writes them. */
export async function mcpPinCommand(
  context: CliContext,
  servers: readonly string[],
  options: McpPinsOptions,
): Promise<ExitCode> {
  const reports = await pinMcp(configFile(options), pinOptions(context, options, servers));
  if (options.json === true) return printJson(context, reports, () => true);
  for (const report of reports) {
    const { lock, tools } = report;
    const server = oneLine(report.server);
    if (lock === null) context.out(`${server}: not pinned, because its "pin" is false`);
    else if (report.isPinned) context.out(`${server}: unchanged in ${lock} (${formatNumberOf(tools.length, "tool")})`);
    else {
      differenceLines(report).forEach(context.out);
      context.out(`${server}: written to ${lock} (${formatNumberOf(countOf(report), "tool")})`);
    }
  }
  return exitCodes.success;
}

/** Shows the differences from the lock files. Exit code 1 if there are any, or a server cannot be used. */
export async function mcpCheckCommand(
  context: CliContext,
  servers: readonly string[],
  options: McpPinsOptions,
): Promise<ExitCode> {
  const reports = await checkMcpPins(configFile(options), pinOptions(context, options, servers));
  if (options.json === true) return printJson(context, reports, isFine);
  for (const report of reports) {
    const { lock, tools, error } = report;
    const server = oneLine(report.server);
    if (error !== undefined) noteBroken(context, report);
    else if (lock === null) context.out(`${server}: not pinned, because its "pin" is false`);
    else if (report.isPinned) context.out(`${server}: as pinned in ${lock} (${formatNumberOf(tools.length, "tool")})`);
    else {
      differenceLines(report).forEach(context.out);
      context.out(`${server}: ${differenceText(report)}`);
    }
  }
  if (reports.every(isFine)) return exitCodes.success;
  warnOfUnpinned(context, options, reports);
  return exitCodes.failure;
}

function pinOptions(context: CliContext, { lock }: McpConfigWords, servers: readonly string[]) {
  const { environment } = context;
  const tokens = loginTokens(context);
  return {
    environment,
    tokens,
    ...(lock === undefined ? {} : { lock }),
    ...(servers.length === 0 ? {} : { only: servers }),
  };
}

function isFine(report: McpServerReport): boolean {
  return isUsable(report) && (report.lock === null || report.isPinned);
}

function isUsable({ error }: McpServerReport): boolean {
  return error === undefined;
}

function printJson(
  context: CliContext,
  reports: readonly McpServerReport[],
  isGood: (report: McpServerReport) => boolean,
): ExitCode {
  for (const { error, ...report } of reports) {
    const code = error === undefined ? {} : { error: { message: error.message } };
    context.out(JSON.stringify({ ...report, ...code }));
  }
  return reports.every(isGood) ? exitCodes.success : exitCodes.failure;
}

function noteBroken(context: CliContext, { server, error }: McpServerReport): void {
  context.note(`${oneLine(server)}: ${failureOf(error, {}).text.replace(/^troupe: /, "")}`);
}

const columns: readonly Column[] = [
  { title: "SERVER", maxWidth: 32 },
  { title: "TOOL", maxWidth: 48 },
  { title: "EFFECT" },
  { title: "APPROVAL" },
  { title: "PIN" },
];

function toolRow(server: string, { name, toolName, effect, needsApproval, pin }: McpToolReport): string[] {
  const approval = needsApproval === "by arguments" ? needsApproval : needsApproval ? "yes" : "no";
  return [server, name, effect, approval, toolName === null && pin !== "added" ? `${pin}, left out` : pin];
}

/** The changed tools, each with its changed lines. */
function differenceLines({ changes, pinnedEra, era, ...report }: McpServerReport): string[] {
  const server = oneLine(report.server);
  return [
    ...(pinnedEra === undefined ? [] : [`${server}: the protocol is ${era}, and was ${pinnedEra}`]),
    ...changes.flatMap(({ kind, name, lines }) => [
      `${server}: ${kind} ${oneLine(printable(name))}`,
      ...lines.map((line) => `  ${line}`),
    ]),
  ];
}

function differenceText({ changes, lock, tools }: McpServerReport): string {
  const isNew = tools.length > 0 && tools.every(({ pin }) => pin === "unpinned");
  if (isNew) return `not in ${lock}`;
  return changes.length === 0
    ? `differs from ${lock}`
    : `${formatNumberOf(changes.length, "tool")} differ from ${lock}`;
}

function countOf({ tools }: McpServerReport): number {
  return tools.filter(({ pin }) => pin !== "removed").length;
}
