import { type Message, textOf, type TraceEntry } from "../../state/index.ts";
import { formatCost, formatCount, formatDuration, formatNumberOf } from "./format.ts";
import { oneLine, printable, truncate } from "./text-width.ts";

const shortText = 160;
const shortLines = 12;

/** Messages as a person reads them; the long ones cut unless all of them was asked for. */
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
      ...(left > 0 ? [`  … ${formatNumberOf(left, "more line")}; --full shows all`] : []),
      ...calls.map((call) => `  → ${call.name} ${clipped(call.arguments, isFull)}`),
    ];
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

/** What a turn did, one line each, with times from its start. */
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
