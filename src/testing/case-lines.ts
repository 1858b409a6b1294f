import type { CaseResult, CaseToolCall } from "./run-case.ts";

/** Longest shown text of arguments, of a result, or of an answer, in characters. */
const LONGEST = 300;
const MOST_CALLS = 30;

/** What a case did, as lines for the message of a failed matcher: its calls, its answer and its figures. */
export function caseLines(result: CaseResult): string[] {
  const { toolCalls, text, status, stopReason, steps, spent, durationMs, error } = result;
  const { inputTokens, outputTokens, cost } = spent.tree;
  const shown = toolCalls.slice(0, MOST_CALLS).map((call, index) => `  ${index + 1}. ${callText(call, result)}`);
  const more = toolCalls.length - shown.length;
  const counted = `${steps} step${steps === 1 ? "" : "s"}, ${inputTokens + outputTokens} tokens, ${dollars(cost)}`;
  return [
    "",
    "The run:",
    `  input: ${cut(typeof result.input === "string" ? result.input : JSON.stringify(result.input))}`,
    ...(toolCalls.length === 0 ? ["  no tool calls"] : shown),
    ...(more > 0 ? [`  and ${more} more calls`] : []),
    ...(result.output === undefined ? [`  text: ${cut(text)}`] : [`  output: ${cut(JSON.stringify(result.output))}`]),
    ...(error ? [`  error: ${error.code}: ${cut(error.message)}`] : []),
    `  ended: ${status} (${stopReason}), ${counted}, ${Math.round(durationMs)} ms`,
  ];
}

/** `look({"order":"7"}) → Order 7: paid`; with its agent if that is a subagent. */
export function callText(call: CaseToolCall, { agentName }: Pick<CaseResult, "agentName">): string {
  const { name, arguments: given, result, isError } = call;
  const by = call.agentName === agentName ? "" : `${call.agentName}: `;
  const got = result === undefined ? "no result" : `${isError ? "error: " : ""}${cut(result)}`;
  return `${by}${name}(${cut(JSON.stringify(given))}) → ${got}`;
}

export function dollars(cost: number | null): string {
  return cost === null ? "price unknown" : `$${cost.toFixed(6)}`;
}

function cut(text: string): string {
  const line = text.replaceAll(/\s+/g, " ").trim();
  return line.length <= LONGEST ? line : `${line.slice(0, LONGEST)}… (${line.length} characters)`;
}
