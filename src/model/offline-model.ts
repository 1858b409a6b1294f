import { setTimeout as delay } from "node:timers/promises";
import { type Door, nameRule, optionsOf, ruleOf, textRule } from "../base/index.ts";
import { ModelError } from "../errors/index.ts";
import type { ModelRequest, ModelResponse } from "../state/index.ts";
import type { GenerateOptions, LanguageModel } from "./language-model.ts";
import { type Plan, planNext } from "./offline-plan.ts";
import { countRequestTokens, countTokens, promptBytes } from "./offline-tokens.ts";

export interface OfflineModelOptions {
  /** Default `offline`. */
  readonly name?: string;
  /** Slows the stream of an answer down to this many tokens a second, for demonstrations. Default: no delay. */
  readonly tokensPerSecond?: number;
  /** Last line of an answer to a person, which says where it comes from; empty for none. */
  readonly closingLine?: string;
}

export const defaultClosingLine =
  "Answered by the rule-based offline engine, no language model; set OPENAI_API_KEY for one.";

/**
 * A rule-based engine behind the port of a language model, for trials and tests without a network. It plans by the
 * tools it is offered, extracts sentences from what it reads, and says so. It knows nothing that is not in the request,
 * and the same request always gets the same answer. Errors: `ModelError` when it is aborted in the middle of an answer,
 * or asked for an answer in a JSON schema, which it cannot fill.
 */
export function offlineModel(given?: OfflineModelOptions): LanguageModel {
  const options = optionsOf<OfflineModelOptions>(given, "offlineModel()", offlineDoor);
  const { name = "offline", tokensPerSecond, closingLine = defaultClosingLine } = options;
  return {
    name,
    provider: "offline",
    countPromptTokens: promptBytes,
    async generate(request, generateOptions) {
      generateOptions.signal.throwIfAborted();
      if (request.responseFormat?.type === "json_schema") {
        throw new ModelError("The offline engine cannot fill a JSON schema: set a language model, or ask for text.", {
          retryable: false,
          mayHaveBeenSent: false,
        });
      }
      const response = respond(request, planNext(withoutLine(request, closingLine)), { name, closingLine });
      await stream(response.content, tokensPerSecond, generateOptions);
      return response;
    },
  };
}

const offlineDoor: Door<OfflineModelOptions> = {
  rules: {
    name: nameRule,
    tokensPerSecond: ruleOf("a number above 0", (value) => typeof value === "number" && value > 0),
    closingLine: textRule,
  },
};

/** Its own closing line in an earlier answer, or in another agent's, is no statement to build on. */
function withoutLine(request: ModelRequest, closingLine: string): ModelRequest {
  if (closingLine === "") return request;
  const messages = request.messages.map((message) => {
    if (message.role === "user" || typeof message.content !== "string" || !message.content.includes(closingLine))
      return message;
    return { ...message, content: message.content.replaceAll(closingLine, "").trimEnd() };
  });
  return { ...request, messages };
}

function respond(
  request: ModelRequest,
  plan: Plan,
  { name, closingLine }: { name: string; closingLine: string },
): ModelResponse {
  const most = request.maxOutputTokens ?? Number.POSITIVE_INFINITY;
  const base = { model: name };
  const inputTokens = countRequestTokens(request);
  if (plan.kind === "calls") {
    const step = request.messages.filter((message) => message.role === "assistant").length;
    const wanted = plan.calls.map((call, index) => ({
      id: `offline_${step}_${index}`,
      name: call.name,
      arguments: JSON.stringify(call.arguments),
    }));
    const { toolCalls, outputTokens } = callsWithin(wanted, most);
    const finishReason = toolCalls.length < wanted.length && toolCalls.length === 0 ? "length" : "tool_calls";
    return { ...base, content: "", toolCalls, usage: { inputTokens, outputTokens, estimated: true }, finishReason };
  }
  const isJson = request.responseFormat?.type === "json";
  const full = isJson
    ? JSON.stringify({ answer: plan.text })
    : plan.isForPerson && closingLine !== ""
      ? `${plan.text}\n\n${closingLine}`
      : plan.text;
  const { text, tokens } = textWithin(full, most);
  return {
    ...base,
    content: text,
    toolCalls: [],
    usage: { inputTokens, outputTokens: tokens, estimated: true },
    finishReason: text.length < full.length ? "length" : "stop",
  };
}

type Calls = ModelResponse["toolCalls"];

/** As many whole calls as the output bound allows. */
function callsWithin(calls: Calls, most: number): { toolCalls: Calls; outputTokens: number } {
  let outputTokens = 0;
  const toolCalls: Calls[number][] = [];
  for (const call of calls) {
    const tokens = countTokens(call.name) + countTokens(call.arguments);
    if (outputTokens + tokens > most) break;
    outputTokens += tokens;
    toolCalls.push(call);
  }
  return { toolCalls, outputTokens };
}

/** As many whole words as the output bound allows. */
function textWithin(full: string, most: number): { text: string; tokens: number } {
  let text = "";
  let tokens = 0;
  for (const piece of piecesOf(full)) {
    const more = countTokens(piece);
    if (tokens + more > most) break;
    tokens += more;
    text += piece;
  }
  return { text, tokens };
}

/** Words, each with the white space before it. */
function piecesOf(text: string): string[] {
  return text.match(/\s*\S+|\s+$/gu) ?? [];
}

async function stream(
  content: string,
  tokensPerSecond: number | undefined,
  { signal, onDelta }: GenerateOptions,
): Promise<void> {
  if (onDelta === undefined && tokensPerSecond === undefined) return;
  let sent = 0;
  for (const piece of piecesOf(content)) {
    const tokens = countTokens(piece);
    try {
      signal.throwIfAborted();
      if (tokensPerSecond !== undefined) await delay((tokens * 1_000) / tokensPerSecond, undefined, { signal });
    } catch {
      throw new ModelError("The answer was cut: the call was aborted.", {
        retryable: false,
        mayHaveBeenSent: true,
        partialOutputTokens: sent,
        cause: signal.reason,
      });
    }
    onDelta?.({ type: "text", text: piece });
    sent += tokens;
  }
}

/** The text analysis is shared with tools that search files, so that both weigh words alike. */
export { type Keywords, keywordsOf } from "./offline-keywords.ts";
export { isRelevant, type Match, matchPassage, surroundingsOf } from "./offline-matching.ts";
export { type Statistics, scoreMatch, statisticsOf } from "./offline-ranking.ts";
export type { NumberedLine } from "./offline-sentence-split.ts";
export { isProse, linePassages, type Passage, passagesOf } from "./offline-sentences.ts";
