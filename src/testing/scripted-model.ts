import { describeValue, type OptionsSchema, nameRule, optionsOf, reading, wholeNumberRule } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { GenerateOptions, LanguageModel, ModelCallIdentity } from "../model/index.ts";
import {
  type AnswerSource,
  type FinishReason,
  type JsonObject,
  type ModelRequest,
  type ModelResponse,
  type ModelWarning,
  textOf,
  type Usage,
} from "../state/index.ts";

/** A tool call in a scripted answer. */
export interface ScriptedToolCall {
  /** Name of the tool. */
  readonly name: string;
  /** An object, or the raw text of the model, which may be invalid JSON. Default `{}`. */
  readonly arguments?: object | string | undefined;
  /** Id of the call. Default: made from the numbers of the model's call and of this one. */
  readonly id?: string | undefined;
}

/** An answer of a scripted model. */
export interface ScriptedReply {
  /** The text of the answer. Default: the joined `deltas`, else none. */
  readonly text?: string | undefined;
  /** Tools that the answer calls. Default: none. */
  readonly toolCalls?: readonly ScriptedToolCall[] | undefined;
  /** Overrides fields of the default usage, which is one token for every four characters, rounded up. */
  readonly usage?: Partial<Usage> | undefined;
  /** Reason for the end of the answer. Default: `tool_calls` with calls, else `stop`. */
  readonly finishReason?: FinishReason | undefined;
  /** The model's thoughts, reported before the text. Default: none. */
  readonly reasoning?: string | undefined;
  /** The answer waits for this promise, or for the signal. */
  readonly delayUntil?: Promise<unknown> | undefined;
  /** Thrown instead of the answer, after the deltas. */
  readonly error?: Error | undefined;
  /** Warnings about the call. Default: none. */
  readonly warnings?: readonly ModelWarning[] | undefined;
  /** What the answer is based on. Default: none. */
  readonly sources?: readonly AnswerSource[] | undefined;
  /** The deltas in which the text is streamed. Default: a single one. Without `text` they form the text. */
  readonly deltas?: readonly string[] | undefined;
}

/** A text, or an answer with further fields. */
export type ScriptedAnswer = string | ScriptedReply;

/** Further arguments of a script function. */
export interface ScriptedCall {
  /** 0 for the model's first call. */
  readonly index: number;
  /** Aborts when the call must end. */
  readonly signal: AbortSignal;
  /** The agent and the step that the call is for; `undefined` if the model is called outside a runtime. */
  readonly call: ModelCallIdentity | undefined;
}

/**
 * The model's answers: a function, one answer for every call, or a list that is used in order and must be long enough.
 */
export type ModelScript =
  | ScriptedAnswer
  | readonly ScriptedAnswer[]
  | ((request: ModelRequest, call: ScriptedCall) => ScriptedAnswer | Promise<ScriptedAnswer>);

/** Options of `scriptedModel()`. */
export interface ScriptedModelOptions {
  /** Name of the model. Default `scripted`. */
  readonly name?: string | undefined;
  /** Provider of the model. Default `scripted`. */
  readonly provider?: string | undefined;
  /** Maximum number of tokens of prompt and answer together. Default: unknown. */
  readonly contextWindow?: number | undefined;
}

/** A model that answers from a script. */
export interface ScriptedModel extends LanguageModel {
  /** The requests so far, in order. */
  readonly calls: readonly ModelRequest[];
}

/** A model for tests that returns its script's answers: no network, no delays, the same answers each time. */
export function scriptedModel(script: ModelScript, given?: ScriptedModelOptions): ScriptedModel {
  const options = optionsOf<ScriptedModelOptions>(given, "scriptedModel()", scriptedOptionsSchema);
  if (!reading("scriptedModel()", () => isScript(script))) {
    throw new InvalidInputError(
      `scriptedModel() accepts an answer, a list of answers or a function that returns them, not ${describeValue(script)}`,
    );
  }
  const name = options.name ?? "scripted";
  const calls: ModelRequest[] = [];
  return {
    name,
    provider: options.provider ?? "scripted",
    contextWindow: options.contextWindow,
    calls,
    countPromptTokens: (request) => tokensOf(promptText(request)),
    async generate(request, generateOptions) {
      const { signal, call } = generateOptions;
      signal.throwIfAborted();
      const index = calls.push(request) - 1;
      const scripted = await unlessAborted(answerOf(script, request, { index, signal, call }), signal);
      const reply = typeof scripted === "string" ? { text: scripted } : scripted;
      await unlessAborted(reply.delayUntil, signal);
      const toolCalls = callsOf(reply, index);
      report(reply, toolCalls, generateOptions);
      if (reply.error !== undefined) throw reply.error;
      return respond(reply, toolCalls, { request, name });
    },
  };
}

const scriptedOptionsSchema: OptionsSchema<ScriptedModelOptions> = {
  rules: { name: nameRule, provider: nameRule, contextWindow: wholeNumberRule(1) },
};

function isScript(script: unknown): boolean {
  if (Array.isArray(script)) return script.every((answer) => isAnswer(answer));
  return typeof script === "function" || isAnswer(script);
}

function isAnswer(answer: unknown): boolean {
  return typeof answer === "string" || (typeof answer === "object" && answer !== null && !Array.isArray(answer));
}

function answerOf(
  script: ModelScript,
  request: ModelRequest,
  call: ScriptedCall,
): ScriptedAnswer | Promise<ScriptedAnswer> {
  if (typeof script === "function") return script(request, call);
  if (!isList(script)) return script;
  const answer = script[call.index];
  if (answer !== undefined) return answer;
  throw new InvalidInputError(
    `The scripted model was called ${call.index + 1} times, but its script has ${script.length} answers. ` +
      "Add an answer, or pass a function.",
  );
}

function isList(script: ScriptedAnswer | readonly ScriptedAnswer[]): script is readonly ScriptedAnswer[] {
  return Array.isArray(script);
}

/** Awaits `work`, and rejects with the signal's reason as soon as it aborts. */
async function unlessAborted<Value>(work: Value | Promise<Value>, signal: AbortSignal): Promise<Value> {
  const { promise: aborted, reject } = Promise.withResolvers<never>();
  const onAbort = (): void => reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    // An abort may have come before this listener was added.
    signal.throwIfAborted();
    return await Promise.race([work, aborted]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}

function report(
  reply: ScriptedReply,
  calls: ModelResponse["toolCalls"],
  { onDelta, signal }: Pick<GenerateOptions, "onDelta" | "signal">,
): void {
  if (onDelta === undefined) return;
  if (reply.reasoning !== undefined && reply.reasoning !== "") onDelta({ type: "reasoning", text: reply.reasoning });
  const whole = reply.text === undefined || reply.text === "" ? [] : [reply.text];
  for (const text of reply.deltas ?? whole) {
    signal.throwIfAborted();
    onDelta({ type: "text", text });
  }
  signal.throwIfAborted();
  for (const [index, { id, name, arguments: text }] of calls.entries()) {
    onDelta({ type: "tool-call", index, id, name });
    onDelta({ type: "tool-arguments", index, text });
  }
}

function callsOf({ toolCalls = [] }: ScriptedReply, index: number): ModelResponse["toolCalls"] {
  return toolCalls.map((call, position) => ({
    id: call.id ?? `call_${index}_${position}`,
    name: call.name,
    arguments: typeof call.arguments === "string" ? call.arguments : JSON.stringify(call.arguments ?? {}),
  }));
}

function respond(
  reply: ScriptedReply,
  toolCalls: ModelResponse["toolCalls"],
  { request, name }: { readonly request: ModelRequest; readonly name: string },
): ModelResponse {
  const content = reply.text ?? (reply.deltas ?? []).join("");
  const reasoning: JsonObject | undefined =
    reply.reasoning === undefined ? undefined : { reasoning_content: reply.reasoning };
  const generated = content + (reply.reasoning ?? "") + toolCalls.map((call) => call.name + call.arguments).join("");
  return {
    content,
    toolCalls,
    ...(reasoning === undefined ? {} : { reasoning }),
    usage: { inputTokens: tokensOf(promptText(request)), outputTokens: tokensOf(generated), ...reply.usage },
    finishReason: reply.finishReason ?? (toolCalls.length === 0 ? "stop" : "tool_calls"),
    model: name,
    ...(reply.warnings === undefined ? {} : { warnings: reply.warnings }),
    ...(reply.sources === undefined ? {} : { sources: reply.sources }),
  };
}

function tokensOf(text: string): number {
  return Math.max(1, Math.ceil(text.length / 4));
}

function promptText(request: ModelRequest): string {
  let text = "";
  for (const message of request.messages) {
    text += textOf(message.content);
    if (message.role !== "assistant") continue;
    for (const call of message.toolCalls ?? []) text += call.name + call.arguments;
  }
  return text + (request.tools === undefined || request.tools.length === 0 ? "" : JSON.stringify(request.tools));
}
