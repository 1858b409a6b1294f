import { DEFAULT_TENANT } from "../../state/index.ts";
import { checkUpgrade, type OpenTurnCheck, type UpgradeReport } from "../../testing/index.ts";
import type { CliContext } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../failure.ts";
import { loadAgentFile } from "../job/agent-file.ts";
import { type StoreOptions, storeLocation, withStore } from "../job/store-location.ts";
import { withMcpTools } from "../mcp/mcp-tools.ts";
import { formatNumberOf } from "../view/format.ts";
import { oneLine } from "../view/terminal-text.ts";
import { divergenceLines, orUsage } from "./replay.ts";

export interface CheckUpgradeCommandOptions extends StoreOptions {
  readonly agents: string;
  /** File with MCP servers, whose tools the agents get. */
  readonly mcp?: string | undefined;
  readonly last?: number | undefined;
  readonly hooks?: "run" | "recorded" | undefined;
  readonly json?: boolean | undefined;
}

/** Runs between two lines of progress. */
const PROGRESS_RUNS = 100;

/** Exit code 0: all runs ask the same, and all open turns go on; 1: not so; 2: the runs cannot be checked. */
export async function checkUpgradeCommand(context: CliContext, options: CheckUpgradeCommandOptions): Promise<ExitCode> {
  return await orUsage(context, async () => {
    const loaded = await loadAgentFile(options.agents, context.directory);
    const { agents } = await withMcpTools(context, loaded, options.mcp);
    const { last, hooks } = options;
    const onProgress = ({ done, of }: { readonly done: number; readonly of: number }): void => {
      if (done % PROGRESS_RUNS === 0 && done < of) context.note(`${done} of ${of} runs checked`);
    };
    const report = await withStore(
      storeLocation(context, options),
      "openExisting",
      async (stores) => await checkUpgrade(stores, { agents, last, hooks, tenant: DEFAULT_TENANT, onProgress }),
    );
    if (options.json === true) context.out(JSON.stringify(report));
    else reportLines(report).forEach(context.out);
    const { different, unreadable, openTurns } = report;
    const isSafe =
      different === 0 && unreadable.length === 0 && openTurns.every(({ verdict }) => verdict === "goes on");
    return isSafe ? exitCodes.success : exitCodes.failure;
  });
}

function reportLines({ runs, same, different, differences, unreadable, openTurns, changed }: UpgradeReport): string[] {
  const changes = Object.entries(changed).map(([what, count]) => `${oneLine(what)} (${formatNumberOf(count, "run")})`);
  const stuck = openTurns.filter(({ verdict }) => verdict !== "goes on");
  return [
    `${formatNumberOf(runs, "run")}: ${same} ask the same, ${different} ask something else` +
      (unreadable.length > 0 ? `, ${unreadable.length} cannot be read` : ""),
    ...(changes.length > 0 ? [`  changed, but in no request: ${changes.join(", ")}`] : []),
    ...differences.flatMap(({ part, agentName, runs: count, bySteps, sample }) => [
      "",
      `${part} of ${oneLine(agentName)}: ${formatNumberOf(count, "run")}, ${stepsText(bySteps)}; for instance in ${sample.rootAgentId}:`,
      ...divergenceLines({ ...sample, part }).map((line) => `  ${line}`),
    ]),
    ...(openTurns.length > 0
      ? ["", `${openTurns.length - stuck.length} of ${formatNumberOf(openTurns.length, "open turn")} can go on`]
      : []),
    ...stuck.map((one) => `  ${stuckLine(one)}`),
    ...unreadable.map(({ rootAgentId, reason }) => `${rootAgentId} cannot be read: ${oneLine(reason)}`),
  ];
}

function stepsText(bySteps: Readonly<Record<string, number>>): string {
  const steps = Object.entries(bySteps).map(([step, count]) =>
    step === "0" ? `at the start of the turn (${count})` : `from step ${step} (${count})`,
  );
  return steps.join(", ");
}

function stuckLine({ agentName, turnId, verdict, tools }: OpenTurnCheck): string {
  return oneLine(`${turnId} (${agentName}) ${verdict}${tools.length > 0 ? `: ${tools.join(", ")}` : ""}`);
}
