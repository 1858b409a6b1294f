import { resolve } from "node:path";
import { DEFAULT_TENANT } from "../../state/index.ts";
import { replay, type ReplayDivergence, type ReplayOptions, type ReplayResult } from "../../testing/index.ts";
import type { CliContext } from "../cli-context.ts";
import { type ExitCode, exitCodes, failureOf } from "../failure.ts";
import { loadAgentFile } from "../job/agent-file.ts";
import { findAgent } from "../job/find-agent.ts";
import { type StoreOptions, storeLocation, withStore } from "../job/store-location.ts";
import { withMcpTools } from "../mcp/mcp-tools.ts";
import { formatNumberOf } from "../view/format.ts";
import { oneLine, printable } from "../view/terminal-text.ts";

export interface ReplayCommandOptions extends StoreOptions {
  readonly agents: string;
  /** File with MCP servers, whose tools the agents get. */
  readonly mcp?: string | undefined;
  readonly hooks?: "run" | "recorded" | undefined;
  readonly json?: boolean | undefined;
}

/** Replays a run of a store or of a file. Exit code 0: equal; 1: it diverges; 2: it cannot be replayed. */
export async function replayCommand(
  context: CliContext,
  what: string,
  options: ReplayCommandOptions,
): Promise<ExitCode> {
  return await orUsage(context, async () => {
    const loaded = await loadAgentFile(options.agents, context.directory);
    const { agents } = await withMcpTools(context, loaded, options.mcp);
    const result = await resultOf(context, what, options, { agents, hooks: options.hooks });
    if (options.json === true) context.out(JSON.stringify(result));
    else resultLines(result).forEach(context.out);
    return result.isEqual ? exitCodes.success : exitCodes.failure;
  });
}

/** A failure of any kind has another exit code than a difference. */
export async function orUsage(context: CliContext, work: () => Promise<ExitCode>): Promise<ExitCode> {
  try {
    return await work();
  } catch (error) {
    context.note(failureOf(error, context.environment).text);
    return exitCodes.usage;
  }
}

async function resultOf(
  context: CliContext,
  what: string,
  options: ReplayCommandOptions,
  replayed: ReplayOptions,
): Promise<ReplayResult> {
  if (what.endsWith(".json")) return await replay(resolve(context.directory, what), replayed);
  return await withStore(storeLocation(context, options), "openExisting", async (stores) => {
    const { agentId } = await findAgent(stores, what);
    return await replay({ stores, agentId, tenant: DEFAULT_TENANT }, replayed);
  });
}

function resultLines(result: ReplayResult): string[] {
  const { rootAgentId, agents, turns, requests, calls, hooks, notCompared, redacted, changed } = result;
  const compared = [
    formatNumberOf(requests, "request"),
    formatNumberOf(calls, "tool call"),
    formatNumberOf(hooks, "run") + " of hooks",
  ];
  const where = `${formatNumberOf(agents, "agent")}, ${formatNumberOf(turns, "turn")}`;
  const skipped = Object.entries(notCompared).map(([what, count]) => `${what} (${count})`);
  return [
    `${oneLine(rootAgentId)}: ${result.isEqual ? "equal" : "diverges"}`,
    `  compared: ${compared.join(", ")} (${where})`,
    ...(skipped.length > 0 ? [`  not compared: ${skipped.join(", ")}`] : []),
    ...(redacted > 0 ? [`  redacted: ${formatNumberOf(redacted, "text")}, each equal to any text`] : []),
    ...(changed.length > 0 ? [`  changed, but in no request: ${changed.map(oneLine).join(", ")}`] : []),
    ...(result.isEqual ? [] : ["", ...divergenceLines(result)]),
  ];
}

/** Where a run diverges, and the lines that differ. */
export function divergenceLines({
  divergedAt,
  part,
  diff,
}: Pick<ReplayDivergence, "divergedAt" | "part" | "diff">): string[] {
  const { agentName, agentId, turn, step } = divergedAt;
  const at = step === 0 ? `turn ${turn}` : `turn ${turn}, step ${step}`;
  return [
    oneLine(`${agentName} (${agentId}), ${at}: ${part}`),
    ...printable(diff)
      .split("\n")
      .map((line) => `  ${line}`),
  ];
}
