import { setTimeout as delay } from "node:timers/promises";
import { type OptionsSchema, nameRule, optionsOf, ruleOf, textRule } from "../base/index.ts";
import { ModelError } from "../errors/index.ts";
import type { ModelResponse } from "../state/index.ts";
import type { GenerateOptions, LanguageModel } from "./language-model.ts";
import { answerFromConversation } from "./offline-conversation.ts";
import { type Assignment, assignmentOf } from "./offline-request.ts";
import { answerFromTools, callsFor, type PlannedCall } from "./offline-tools.ts";
import { promptByteBound } from "./token-count.ts";

export interface OfflineModelOptions {
  /** Default `offline`. */
  readonly name?: string;
  /** Limits the stream of an answer to this many tokens a second, for demonstrations. Default: no limit. */
  readonly tokensPerSecond?: number;
  /** Last line of an answer to a person; empty for none. Default: a line which states that rules made the answer. */
  readonly closingLine?: string;
}

const speedRule = ruleOf("a number above 0", (value) => typeof value === "number" && value > 0);
const offlineOptionsSchema: OptionsSchema<OfflineModelOptions> = {
  rules: { name: nameRule, tokensPerSecond: speedRule, closingLine: textRule },
};
export const defaultClosingLine =
  "Answered by the rule-based offline engine, no language model; set OPENAI_API_KEY for one.";
const bytesPerToken = 4;

/** The next step of a rule-based model: tool calls, or an answer. */
export type Plan = readonly PlannedCall[] | string;

/**
 * A rule-based engine that implements `LanguageModel`, for trials and tests without a network. It calls the tools whose names and
 * descriptions fit the message and returns their results; without a fitting tool it quotes the statement of the conversation that fits
 * the question best. The same request always gets the same answer. Errors: `ModelError` when it is aborted during an answer, or when the
 * request has a JSON schema for the answer.
 */
export function offlineModel(given?: OfflineModelOptions): LanguageModel {
  return plannedModel(planNext, optionsOf<OfflineModelOptions>(given, "offlineModel()", offlineOptionsSchema));
}

async function planNext(assignment: Assignment): Promise<Plan> {
  const { results, tools, prompt } = assignment;
  const plan = results.length > 0 ? answerFromTools(results) : callsFor(tools, prompt);
  return plan.length > 0 ? plan : await answerFromConversation(assignment);
}

/**
 * A language model that follows a plan made from the request alone: it appends the closing line, streams, and obeys `maxOutputTokens`.
 */
export function plannedModel(
  planOf: (assignment: Assignment) => Promise<Plan>,
  { name = "offline", tokensPerSecond, closingLine = defaultClosingLine }: OfflineModelOptions,
): LanguageModel {
  return {
    name,
    provider: "offline",
    countPromptTokens: (request) => promptByteBound(request),
    async generate(request, options) {
      options.signal.throwIfAborted();
      const { messages, responseFormat, stopSequences = [], maxOutputTokens = Number.POSITIVE_INFINITY } = request;
      if (responseFormat?.type === "json_schema") {
        const why = "The offline engine cannot fill a JSON schema: set a language model, or ask for text.";
        throw new ModelError(why, { retryable: false, mayHaveBeenSent: false });
      }
      const assignment = assignmentOf(request, closingLine);
      const plan = await planOf(assignment);
      const [text, planned] = typeof plan === "string" ? [plan, []] : ["", plan];
      const signature = assignment.file === undefined && closingLine !== "" ? `\n\n${closingLine}` : "";
      const whole = cutAt(
        responseFormat?.type === "json" ? JSON.stringify({ answer: text }) : text + signature,
        stopSequences,
      );
      const calls = planned.map(({ name: tool, arguments: given }, index) => {
        return { id: `offline_${messages.length}_${index}`, name: tool, arguments: JSON.stringify(given) };
      });
      // Calls, or words with their leading white space: as many as `maxOutputTokens` allows.
      const isText = typeof plan === "string";
      const pieces = isText ? (whole.match(/\s*\S+/gu) ?? []) : calls.map((call) => call.name + call.arguments);
      let outputTokens = 0;
      let kept = 0;
      for (const piece of pieces) {
        if (outputTokens + countTokens(piece) > maxOutputTokens) break;
        outputTokens += countTokens(piece);
        kept += 1;
      }
      const words = isText ? pieces.slice(0, kept) : [];
      if (isText) await stream(words, tokensPerSecond, options);
      else {
        await stream(pieces.slice(0, kept), tokensPerSecond, { signal: options.signal });
        reportCalls(calls.slice(0, kept), options);
      }
      return {
        model: name,
        content: words.join(""),
        toolCalls: calls.slice(0, kept),
        usage: { inputTokens: Math.ceil(promptByteBound(request) / bytesPerToken), outputTokens, estimated: true },
        finishReason: !isText && kept > 0 ? "tool_calls" : kept < pieces.length ? "length" : "stop",
      };
    },
  };
}

function cutAt(text: string, stopSequences: readonly string[]): string {
  const ends = stopSequences.map((stop) => text.indexOf(stop)).filter((end) => end >= 0);
  return ends.length === 0 ? text : text.slice(0, Math.min(...ends));
}

function reportCalls(calls: ModelResponse["toolCalls"], { onDelta }: GenerateOptions): void {
  for (const [index, { id, name, arguments: text }] of calls.entries()) {
    onDelta?.({ type: "tool-call", index, id, name });
    onDelta?.({ type: "tool-arguments", index, text });
  }
}

async function stream(pieces: readonly string[], pace: number | undefined, { signal, onDelta }: GenerateOptions) {
  let partialOutputTokens = 0;
  for (const text of pieces) {
    const tokens = countTokens(text);
    if (pace !== undefined) await delay((tokens * 1_000) / pace, undefined, { signal }).catch(() => {});
    if (signal.aborted) {
      const details = { retryable: false, mayHaveBeenSent: true, partialOutputTokens, cause: signal.reason };
      throw new ModelError("The answer was cut: the call was aborted.", details);
    }
    onDelta?.({ type: "text", text });
    partialOutputTokens += tokens;
  }
}

function countTokens(text: string): number {
  return Math.ceil(Buffer.byteLength(text.trim()) / bytesPerToken);
}
