import { createRedactor, flagRule, optionsOf, type Redactor } from "../base/index.ts";
import type { TraceEntry } from "../state/index.ts";
import { redactorRule } from "./listen.ts";
import { costText, countText, durationText, oneLine } from "./plain-text.ts";

/** Options of `renderTrace()`. */
export interface RenderTraceOptions {
  /** Includes prompts, arguments and results, cut to one line. Default true. */
  readonly content?: boolean | undefined;
  /** Removes secrets. Default: `createRedactor()`, which removes the environment's secrets. */
  readonly redactor?: Redactor | undefined;
}

const titles = ["step", "what", "name", "status", "time", "tokens", "cost", "content"] as const;
const isNumber = [true, false, false, false, true, true, true, false] as const;

/**
 * Formats a turn's trace (`agent.getTrace()`) as a table for a terminal: a line for each entry, in order, and one with
 * the sums of the model calls.
 */
export function renderTrace(entries: readonly TraceEntry[], given?: RenderTraceOptions): string {
  const options = optionsOf<RenderTraceOptions>(given, "renderTrace()", {
    rules: { content: flagRule, redactor: redactorRule },
  });
  const { content = true, redactor = createRedactor() } = options;
  const rows = entries.map((entry) => rowOf(redactor.value(entry) as TraceEntry));
  const table = [titles, ...rows, totalsOf(entries)].map((row) => (content ? row : row.slice(0, -1)));
  const widths = titles.map((_, column) => Math.max(...table.map((row) => row[column]?.length ?? 0)));
  return table
    .map((row) =>
      row
        .map((cell, column) => padded(cell, widths[column] ?? 0, column))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

function padded(cell: string, width: number, column: number): string {
  return isNumber[column] === true ? cell.padStart(width) : cell.padEnd(width);
}

function rowOf(entry: TraceEntry): readonly string[] {
  const step = String(entry.step);
  if (entry.type === "user_input") {
    return [step, "user", `turn ${entry.turn}`, "", "", "", "", oneLine(entry.prompt, 80)];
  }
  const time = durationText(entry.durationMs);
  if (entry.type === "llm_call") {
    const { model, toolCallsCount, usage } = entry;
    const tokens = String(usage.inputTokens + usage.outputTokens);
    const { cachedInputTokens = 0 } = usage;
    const notes = [
      ...(toolCallsCount === 0 ? [] : [countText(toolCallsCount, "tool call")]),
      ...(cachedInputTokens === 0 ? [] : [`${cachedInputTokens} of ${usage.inputTokens} input tokens cached`]),
    ];
    return [step, "model", oneLine(model, 40), "", time, tokens, costText(usage.costMicros), notes.join(", ")];
  }
  const { name, status, errorType } = entry;
  const said = `${JSON.stringify(entry.arguments)} → ${entry.result ?? entry.error ?? ""}`;
  const outcome = errorType === undefined || errorType === status ? status : `${status} (${oneLine(errorType, 30)})`;
  return [step, "tool", oneLine(name, 40), outcome, time, "", "", oneLine(said, 100)];
}

function totalsOf(entries: readonly TraceEntry[]): readonly string[] {
  let [time, tokens] = [0, 0];
  let cost: number | null = 0;
  for (const entry of entries) {
    if (entry.type !== "llm_call") continue;
    const { inputTokens, outputTokens, costMicros } = entry.usage;
    time += entry.durationMs;
    tokens += inputTokens + outputTokens;
    cost = cost === null || costMicros === null ? null : cost + costMicros;
  }
  return ["", "total", "", "", durationText(time), String(tokens), costText(cost), ""];
}
