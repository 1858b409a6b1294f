import { setTimeout as delay } from "node:timers/promises";
import { type Door, nameRule, optionsOf, ruleOf, textRule } from "../base/index.ts";
import { ModelError } from "../errors/index.ts";
import { type Message, type ModelRequest, type ModelResponse, type ModelTool, textOf } from "../state/index.ts";
import type { GenerateOptions, LanguageModel } from "./language-model.ts";
import { answerFromConversation } from "./offline-conversation.ts";
import { assignmentOf } from "./offline-request.ts";
import { answerFromTools, chooseTools, missingText, type PlannedCall } from "./offline-tools.ts";

export interface OfflineModelOptions {
  /** Default `offline`. */
  readonly name?: string;
  /** Slows the stream of an answer down to this many tokens a second, for demonstrations. Default: no delay. */
  readonly tokensPerSecond?: number;
  /**
   * Last line of an answer to a person, which says that rules made it; empty for none. Default: a line of the package's
   * own.
   */
  readonly closingLine?: string;
}

const perMessage = 4;
const charactersPerToken = 7;
const messageOverheadBytes = 64;
const toolOverheadBytes = 64;

export const defaultClosingLine =
  "Answered by the rule-based offline engine, no language model; set OPENAI_API_KEY for one.";

/** The next step of a rule-based model: tool calls, or an answer. Only an answer for a person ends with the closing line. */
export type Plan =
  | { readonly kind: "calls"; readonly calls: readonly PlannedCall[] }
  | { readonly kind: "answer"; readonly text: string; readonly isForPerson: boolean };

/**
 * A rule-based engine behind the port of a language model, for trials and tests without a network. It calls the tools
 * whose names and descriptions fit the message and passes on their results; without a fitting tool it quotes the
 * statement of the conversation that fits the question best. It uses only the request, so the same request always gets
 * the same answer. Errors: `ModelError` when it is aborted in the middle of an answer, or asked for an answer in a JSON
 * schema, which it cannot fill.
 */
export function offlineModel(given?: OfflineModelOptions): LanguageModel {
  return plannedModel(planNext, optionsOf<OfflineModelOptions>(given, "offlineModel()", offlineDoor));
}

function planNext(request: ModelRequest): Plan {
  const assignment = assignmentOf(request);
  const answer = (text: string): Plan => ({ kind: "answer", text, isForPerson: !assignment.isDelegated });
  if (assignment.results.length > 0) return answer(answerFromTools(assignment.results));
  const tools = request.toolChoice === "none" ? [] : (request.tools ?? []);
  const choice = chooseTools(tools, assignment.question);
  if (choice.calls.length > 0) return { kind: "calls", calls: choice.calls };
  return answer(choice.incomplete.length > 0 ? missingText(choice) : answerFromConversation(assignment, tools));
}

/**
 * A language model that follows a plan made from the request alone: it counts tokens, streams, and keeps to the output
 * bound.
 */
export function plannedModel(plan: (request: ModelRequest) => Plan, options: OfflineModelOptions): LanguageModel {
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
      const response = respond(request, plan(withoutLine(request, closingLine)), { name, closingLine });
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

/** Removes the closing line from earlier answers, because it must not be quoted. */
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

/**
 * A rough count of a text's tokens: short words and runs of one sign are one, long words one per 7 characters; never
 * more than its bytes.
 */
export function countTokens(text: string): number {
  let count = 0;
  for (const [piece] of text.matchAll(/[A-Za-z]+|\d{1,3}|([^\sA-Za-z\d])\1*/gu)) {
    count +=
      piece.charCodeAt(0) < 128
        ? Math.ceil(piece.length / charactersPerToken)
        : Math.ceil(Buffer.byteLength(piece) / 3);
  }
  return count;
}

/** An estimate of the tokens of the whole request, at most `promptBytes`. */
export function countRequestTokens(request: ModelRequest): number {
  const messages = request.messages.reduce(
    (sum, message) => sum + perMessage + textsOf(message).reduce((tokens, text) => tokens + countTokens(text), 0),
    0,
  );
  const tools = (request.tools ?? []).reduce(
    (sum, tool) =>
      sum + perMessage + countTokens(tool.name) + countTokens(tool.description) + countTokens(schemaText(tool)),
    0,
  );
  return messages + tools;
}

/** Upper bound of a request's tokens: a byte-level tokenizer never makes more tokens than there are UTF-8 bytes. */
export function promptBytes(request: ModelRequest): number {
  const messages = request.messages.reduce(
    (sum, message) =>
      sum + messageOverheadBytes + textsOf(message).reduce((bytes, text) => bytes + Buffer.byteLength(text), 0),
    0,
  );
  const tools = (request.tools ?? []).reduce(
    (sum, tool) =>
      sum +
      toolOverheadBytes +
      Buffer.byteLength(tool.name) +
      Buffer.byteLength(tool.description) +
      Buffer.byteLength(schemaText(tool)),
    0,
  );
  const format = request.responseFormat === undefined ? 0 : Buffer.byteLength(JSON.stringify(request.responseFormat));
  return messages + tools + format;
}

function textsOf(message: Message): string[] {
  const texts = [textOf(message.content)];
  if (message.role === "assistant") {
    for (const call of message.toolCalls ?? []) texts.push(call.name, call.arguments, call.providerId);
    if (message.reasoning !== undefined) texts.push(JSON.stringify(message.reasoning));
  }
  if (message.role === "tool") texts.push(message.providerId);
  if (typeof message.content !== "string")
    for (const part of message.content) if (part.type === "image") texts.push(part.url);
  return texts;
}

const schemaTexts = new WeakMap<object, string>();

/** Caches the text of a schema: a tool passes the same object in each call. */
function schemaText(tool: ModelTool): string {
  const known = schemaTexts.get(tool.parameters);
  if (known !== undefined) return known;
  const text = JSON.stringify(tool.parameters);
  schemaTexts.set(tool.parameters, text);
  return text;
}
