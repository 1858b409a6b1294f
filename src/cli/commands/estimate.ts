import type { Price } from "../../budget/index.ts";
import { DEFAULT_TENANT } from "../../state/index.ts";
import { type Distribution, type Estimate, estimate, type OtherTurns, type Share } from "../../testing/index.ts";
import type { CliContext } from "../cli-context.ts";
import { type ExitCode, exitCodes } from "../failure.ts";
import { readArgument } from "../inline/standard-input.ts";
import { chosenFirst, loadAgentFile } from "../job/agent-file.ts";
import { type StoreOptions, storeLocation, withStore } from "../job/store-location.ts";
import { withMcpTools } from "../mcp/mcp-tools.ts";
import { formatCost, formatCount, formatDuration, formatNumberOf } from "../view/format.ts";
import { type Column, columnsOf, tableLines } from "../view/table.ts";
import { oneLine } from "../view/terminal-text.ts";
import { orUsage } from "./replay.ts";

export interface EstimateCommandOptions extends StoreOptions {
  readonly input?: string | undefined;
  /** Name of the definition, if the file exports several. */
  readonly agent?: string | undefined;
  readonly last?: number | undefined;
  readonly model?: string | undefined;
  /** JSON of a price; checked with the rest. */
  readonly price?: object | undefined;
  /** File with MCP servers, whose tools the agents get. */
  readonly mcp?: string | undefined;
  readonly json?: boolean | undefined;
}

/** Exit code 0: there are recorded turns of today's definitions; 1: there are none; 2: the forecast cannot be made. */
export async function estimateCommand(
  context: CliContext,
  file: string,
  options: EstimateCommandOptions,
): Promise<ExitCode> {
  return await orUsage(context, async () => {
    const { agent: name, last, model, price, mcp } = options;
    const loaded = await withMcpTools(context, await loadAgentFile(file, context.directory), mcp);
    const [agent] = chosenFirst(loaded, file, { name });
    const input = options.input === undefined ? undefined : await readArgument(context, options.input);
    const whatIf = model === undefined ? undefined : { model, price: price as Price | undefined };
    const result = await withStore(
      storeLocation(context, options),
      "openExisting",
      async (stores) => await estimate(stores, { agent, input, last, whatIf, tenant: DEFAULT_TENANT }),
    );
    if (options.json === true) context.out(JSON.stringify(result));
    else estimateLines(result, columnsOf(context)).forEach(context.out);
    return result.runs > 0 ? exitCodes.success : exitCodes.failure;
  });
}

function estimateLines(result: Estimate, width: number): string[] {
  const { agentName, runs, leftOut, prompt, others, unreadable } = result;
  const left = [
    ...(leftOut.open > 0 ? [`${leftOut.open} still open`] : []),
    ...(leftOut.aborted > 0 ? [`${leftOut.aborted} aborted`] : []),
  ];
  return [
    `${agentName}: ${formatNumberOf(runs, "recorded turn")} of today's definitions` +
      (left.length > 0 ? ` (not counted: ${left.join(", ")})` : ""),
    ...(prompt ? [promptLine(prompt)] : []),
    ...(runs > 0
      ? figureLines(result, width)
      : ["There is nothing to forecast from: run the agent a few times first."]),
    ...(others.length > 0 ? ["", "Turns of other definitions, not counted:", ...others.map(otherLine)] : []),
    ...unreadable.map(({ rootAgentId, reason }) => `${rootAgentId} cannot be read: ${oneLine(reason)}`),
  ];
}

function promptLine({ tokens, recorded }: NonNullable<Estimate["prompt"]>): string {
  const line = `First prompt for this input: ${formatCount(tokens)} tokens`;
  if (!recorded) return line;
  const compared = `${line}; recorded: ${formatCount(recorded.min)} to ${formatCount(recorded.max)}`;
  return tokens > recorded.max
    ? `${compared}. It is longer than all of them: expect more than the forecast.`
    : compared;
}

const columns: readonly Column[] = [
  { title: "" },
  ...["typical", "90 %", "99 %", "most"].map((title) => ({ title, align: "right" as const })),
  { title: "typical, at most", align: "right", leaveOut: 1 },
];

type Format = (value: number) => string;

function figureLines(result: Estimate, width: number): string[] {
  const { costMicros, pricedToday, unpriced, whatIf, runs, isRough, hitBudget, byLimit, budgets } = result;
  const rows: readonly (readonly [string, Distribution | undefined, Format])[] = [
    ["steps", result.steps, String],
    ["steps with subagents", result.treeSteps, String],
    ["tool calls", result.treeToolCalls, String],
    ["input tokens", result.inputTokens, formatCount],
    ["  of these cached", result.cachedInputTokens, formatCount],
    ["output tokens", result.outputTokens, formatCount],
    ["cost", costMicros, formatCost],
    ...(whatIf ? [[`cost with ${whatIf.model}`, whatIf.costMicros, formatCost] as const] : []),
    ["time of work", result.activeMs, formatDuration],
  ];
  const limits = Object.entries(byLimit).map(([name, count]) => `${name} ${count}`);
  return [
    "",
    ...tableLines(
      columns,
      rows.flatMap(([title, of, format]) => (of ? [rowOf(title, of, format)] : [])),
      width,
    ),
    "",
    ...(isRough
      ? [
          `${formatNumberOf(runs, "turn")}: rough figures. The last column is the bound that holds with 95 % confidence.`,
        ]
      : []),
    ...(pricedToday > 0
      ? [`${formatNumberOf(pricedToday, "turn")} had no price when recorded; today's prices count.`]
      : []),
    ...(unpriced > 0
      ? [`The cost of ${formatNumberOf(unpriced, "turn")} is unknown; --model NAME --price JSON gives a price.`]
      : []),
    `Stopped by a budget: ${shareText(hitBudget)}${limits.length > 0 ? `: ${limits.join(", ")}` : ""}`,
    ...(budgets.length > 0 ? ["", "Budgets, and the recorded turns that each would stop:"] : []),
    ...budgets.map(({ flag, stops }) => `  ${flag}  ${shareText(stops)}`),
  ];
}

function rowOf(title: string, { p50, p90, p99, max }: Distribution, format: Format): string[] {
  const shown = (value: number | null | undefined): string => (typeof value === "number" ? format(value) : "-");
  return [title, shown(p50.value), shown(p90?.value), shown(p99?.value), shown(max), shown(p50.upTo)];
}

function percent(part: number): number {
  return Math.round(part * 100);
}

/** `2 of 40 (5 %; in general 1 to 17 %)`. */
function shareText({ runs, of, share, from, to }: Share): string {
  if (share === null) return "0 of 0";
  return `${runs} of ${of} (${percent(share)} %; in general ${percent(from)} to ${percent(to)} %)`;
}

function otherLine({ hash, runs, changed, steps, tokens, costMicros }: OtherTurns): string {
  const typical = [
    ...(steps ? [formatNumberOf(steps.p50.value, "step")] : []),
    ...(tokens ? [`${formatCount(tokens.p50.value)} tokens`] : []),
    ...(costMicros ? [formatCost(costMicros.p50.value)] : []),
  ];
  return `  ${hash.slice(0, 12)}: ${formatNumberOf(runs, "turn")}, changed since: ${changed.join(", ")}; typical ${typical.join(", ")}`;
}
