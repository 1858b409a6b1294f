import type { z } from "zod";
import {
  createId,
  describeValue,
  type Json,
  renderPath,
  toJson,
  wordsOfThrown,
  readableThrown,
} from "../base/index.ts";
import { InvalidInputError, ModelError } from "../errors/index.ts";
import {
  answeringAdapterSchema,
  type AnswerSource,
  answerSourceSchema,
  contentSchema,
  type FinishReason,
  finishReasonSchema,
  type JsonObject,
  type ModelResponse,
  type ModelWarning,
  modelWarningSchema,
  taken,
  textOf,
  type Usage,
  type ModelRequest,
} from "../state/index.ts";
import { answerEnd, brokenBy, type BrokenAnswer } from "./finish-reason.ts";
import { type GivenUsage, readUsage, completeUsage, isTokenCount } from "./usage.ts";
import { type GenerateOptions, type LanguageModel, type ModelDelta, MOST_CALLS } from "./language-model.ts";
import { byteBound, countPromptTokens, promptByteBound } from "./token-count.ts";

/** An answer ready for the journal, and the warnings for the agent. */
export interface ModelAnswer {
  readonly response: ModelResponse;
  readonly warnings: readonly { readonly code: string; readonly message: string }[];
}

type CallOptions = Required<Pick<GenerateOptions, "signal" | "call">> & Pick<GenerateOptions, "onDelta">;

/**
 * Makes one attempt of one call. This is the only caller of `LanguageModel.generate`: even if an adapter misbehaves, the result fits its
 * schema and is bounded, and errors are readable.
 * @throws ModelError for an unusable answer; otherwise the adapter's error.
 */
export async function callModel(
  model: LanguageModel,
  request: ModelRequest,
  { signal, onDelta, call }: CallOptions,
): Promise<ModelAnswer> {
  let isOver = false;
  const listen = (given: unknown): void => {
    const delta = isOver ? undefined : deltaOf(given);
    if (delta) onDelta?.(delta);
  };
  let given: unknown;
  try {
    given = await model.generate(request, onDelta ? { signal, call, onDelta: listen } : { signal, call });
  } catch (thrown) {
    throw adapterError(thrown);
  } finally {
    isOver = true;
  }
  const checked = takeAnswer(given, model.name);
  if (checked.broken !== undefined) throw brokenAnswer(checked.broken, checked.usage.usage);
  const usage = checked.usage.usage ?? (await counted(request, checked));
  return { response: { ...checked.answer, usage }, warnings: warningsOf(checked, usage) };
}

/** A valid delta, or `undefined`. Deltas are shown and never stored, so an invalid one is skipped. */
function deltaOf(given: unknown): ModelDelta | undefined {
  try {
    const { type, text, index, id, name } = given as Readonly<Record<string, unknown>>;
    if (type === "text" || type === "reasoning") return typeof text === "string" ? { type, text } : undefined;
    if (!isCallIndex(index)) return undefined;
    if (type === "tool-arguments") return typeof text === "string" ? { type, index, text } : undefined;
    return type === "tool-call" && isName(name) ? { type, index, id: isId(id) ? id : "", name } : undefined;
  } catch {
    return undefined;
  }
}

function isCallIndex(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) < MOST_CALLS;
}

/** The reported usage where it is plausible; the rest is counted, or estimated by its bytes if counting fails. */
async function counted(request: ModelRequest, { answer, usage: told }: TakenAnswer): Promise<Usage> {
  const { content, toolCalls, reasoning } = answer;
  const calls = toolCalls.map((call) => call.name + call.arguments).join("");
  const generated = content + calls + (reasoning === undefined ? "" : JSON.stringify(reasoning));
  const { inputTokens, outputTokens } = told;
  const reported = {
    ...(inputTokens === undefined ? {} : { inputTokens }),
    ...(outputTokens === undefined ? {} : { outputTokens }),
  };
  try {
    const countInput = (): number | Promise<number> => countPromptTokens(request);
    return { ...(await completeUsage({ reported, generated, countInput })), estimated: true };
  } catch {
    const bytes = { inputTokens: promptByteBound(request), outputTokens: byteBound(generated) };
    return { ...bytes, ...reported, estimated: true };
  }
}

function warningsOf({ usage: told, lost }: TakenAnswer, { note }: Usage): ModelAnswer["warnings"] {
  const warnings = [];
  if (told.wrong !== undefined) {
    const place = told.usage === undefined ? "it was counted here" : "it was left out";
    const message = `the model's adapter reported ${told.wrong}, an impossible count; ${place}`;
    warnings.push({ code: "usage_not_true", message });
  } else if (note !== undefined) warnings.push({ code: "usage_not_true", message: note });
  if (lost !== undefined) {
    const message = `the answer's reasoning is not valid JSON and is not sent back to the model: ${lost}`;
    warnings.push({ code: "reasoning_lost", message });
  }
  return warnings;
}

/** Longest wait that an adapter may ask for before the next attempt, in milliseconds. */
const LONGEST_WAIT_MS = 2 ** 31 - 1;

/** Retries and billing depend on a model error's fields, so implausible values are removed. */
function adapterError(thrown: unknown): unknown {
  const error = readableThrown(thrown);
  if (!(error instanceof ModelError) || isPlain(error)) return error;
  const { message, retryable, status, retryAfterMs, mayHaveBeenSent } = error;
  const { partialInputTokens, partialOutputTokens } = error;
  return new ModelError(message, {
    retryable: flag(retryable, false),
    mayHaveBeenSent: flag(mayHaveBeenSent, true),
    cause: error,
    ...(Number.isSafeInteger(status) ? { status } : {}),
    ...(typeof retryAfterMs === "number" && retryAfterMs >= 0
      ? { retryAfterMs: Math.ceil(Math.min(retryAfterMs, LONGEST_WAIT_MS)) }
      : {}),
    ...(isTokenCount(partialInputTokens) ? { partialInputTokens } : {}),
    ...(isTokenCount(partialOutputTokens) ? { partialOutputTokens } : {}),
    ...(isDecisive(error.details?.["kind"]) ? { details: { kind: error.details["kind"] } } : {}),
  });
}

/** Whether the end of a turn depends on this kind of a failure. */
function isDecisive(kind: unknown): boolean {
  return kind === "context_length" || kind === "refusal";
}

function flag(value: unknown, otherwise: boolean): boolean {
  return typeof value === "boolean" ? value : otherwise;
}

function isPlain(error: ModelError): boolean {
  const { retryable, status, retryAfterMs, mayHaveBeenSent, partialInputTokens, partialOutputTokens } = error;
  return (
    typeof retryable === "boolean" &&
    typeof mayHaveBeenSent === "boolean" &&
    (status === undefined || Number.isSafeInteger(status)) &&
    (retryAfterMs === undefined || isWait(retryAfterMs)) &&
    (partialInputTokens === undefined || isTokenCount(partialInputTokens)) &&
    (partialOutputTokens === undefined || isTokenCount(partialOutputTokens))
  );
}

function isWait(value: unknown): boolean {
  return Number.isSafeInteger(value) && (value as number) >= 0 && (value as number) <= LONGEST_WAIT_MS;
}

/** Largest content and tool calls of an answer together, in UTF-16 units. */
const MOST_CHARACTERS = 2 ** 24;
/** Longest name of a tool or a model. */
const LONGEST_NAME = 1_000;
/** Longest id of a call: some gateways put a reasoning signature into it. */
const LONGEST_ID = 2 ** 16;

/** A checked answer: plain JSON and bounded. */
interface TakenAnswer {
  readonly answer: Omit<ModelResponse, "usage">;
  readonly usage: GivenUsage;
  /** Why reasoning was dropped; `undefined` if none was dropped. */
  readonly lost: string | undefined;
  /** Why the answer is not complete; `undefined` if it is. */
  readonly broken: BrokenAnswer | undefined;
}

/** Most warnings and sources of an answer, and the longest text in one, in UTF-16 units; the rest is left out. */
const MOST_WARNINGS = 20;
const MOST_SOURCES = 200;
const LONGEST_CODE = 100;
const LONGEST_TEXT = 2_000;
const LONGEST_URL = 2 ** 13;

type Fields = Readonly<Record<keyof ModelResponse, unknown>>;

/**
 * Converts an adapter's answer to the schema of an answer, reading each field once: object arguments become text, a call without an id
 * gets one, and a server's finish reason is mapped to ours.
 * @param requested The model name if the answer has none.
 * @throws ModelError, retryable, for an unusable answer; with the reported tokens if they are plausible.
 */
function takeAnswer(given: unknown, requested: string): TakenAnswer {
  let usage: GivenUsage | undefined;
  try {
    if (typeof given !== "object" || given === null) {
      throw new InvalidInputError(
        `it is ${describeValue(given)}; it must be an object with content, toolCalls and usage`,
      );
    }
    const fields = given as Fields;
    usage = readUsage(fields.usage);
    return { ...read(fields, requested), usage };
  } catch (error) {
    const words = error instanceof InvalidInputError ? error.message : `reading it failed: ${wordsOfThrown(error)}`;
    throw unusable(words, usage?.usage);
  }
}

function read(fields: Fields, requested: string): Omit<TakenAnswer, "usage"> {
  const toolCalls = callsOf(fields.toolCalls);
  const content = answerContent(fields.content, toolCalls.length > 0);
  const { reasoning, lost } = reasoningOf(fields.reasoning);
  let size = content.length;
  for (const call of toolCalls) size += call.id.length + call.name.length + call.arguments.length;
  if (size > MOST_CHARACTERS)
    throw new InvalidInputError(`it is longer than the permitted ${MOST_CHARACTERS} characters`);
  const { model, finishReason, prefixHash } = fields;
  const adapter = fields.adapter === undefined ? undefined : taken(answeringAdapterSchema, fields.adapter);
  const [warnings, sources] = [usableWarnings(fields.warnings), usableSources(fields.sources)];
  const answer: TakenAnswer["answer"] = {
    content,
    toolCalls,
    ...(reasoning === undefined ? {} : { reasoning }),
    finishReason: reasonOf(finishReason, toolCalls.length > 0),
    model: isName(model) && model !== "" ? model : requested,
    ...(adapter?.ok ? { adapter: adapter.value } : {}),
    ...(warnings.length === 0 ? {} : { warnings }),
    ...(sources.length === 0 ? {} : { sources }),
    ...(isName(prefixHash) ? { prefixHash } : {}),
  };
  const broken = isReason(finishReason) ? brokenBy(finishReason) : undefined;
  return { answer, lost, broken };
}

/** Warnings and sources are shown to people; an item of another form is left out. */
function usableWarnings(given: unknown): ModelWarning[] {
  return itemsOf(modelWarningSchema, given, MOST_WARNINGS).map(({ code, message }) => ({
    code: code.slice(0, LONGEST_CODE),
    message: message.slice(0, LONGEST_TEXT),
  }));
}

function usableSources(given: unknown): AnswerSource[] {
  return itemsOf(answerSourceSchema, given, MOST_SOURCES)
    .filter(({ url = "" }) => url.length <= LONGEST_URL)
    .map((source) => ({
      ...source,
      ...(source.title === undefined ? {} : { title: source.title.slice(0, LONGEST_TEXT) }),
    }));
}

function itemsOf<Schema extends z.ZodType>(schema: Schema, given: unknown, most: number): z.infer<Schema>[] {
  if (!Array.isArray(given)) return [];
  return given.slice(0, most).flatMap((item) => {
    const read = taken(schema, item);
    return read.ok ? [read.value as z.infer<Schema>] : [];
  });
}

const finishReasons: ReadonlySet<unknown> = new Set(finishReasonSchema.options);

function isFinishReason(value: unknown): value is FinishReason {
  return finishReasons.has(value);
}

/** Whether the value is a server's finish reason; a missing one and `unknown` are not. */
function isReason(value: unknown): value is string {
  return typeof value === "string" && value !== "" && value !== "unknown";
}

function reasonOf(given: unknown, hasCalls: boolean): FinishReason {
  if (isFinishReason(given)) return given;
  const end = isReason(given) ? answerEnd(given) : undefined;
  if (end === "length" || end === "content_filter") return end;
  if (hasCalls) return "tool_calls";
  return end === "stop" ? "stop" : "unknown";
}

function answerContent(given: unknown, hasCalls: boolean): string {
  if (typeof given === "string") return given;
  if ((given === undefined || given === null) && hasCalls) return "";
  if (Array.isArray(given)) {
    const parts = taken(contentSchema, given);
    if (parts.ok) return textOf(parts.value as Parameters<typeof textOf>[0]);
  }
  throw new InvalidInputError(`its content is ${describeValue(given)}; it must be a text`);
}

type Call = ModelResponse["toolCalls"][number];

function callsOf(given: unknown): Call[] {
  if (given === undefined || given === null) return [];
  if (!Array.isArray(given))
    throw new InvalidInputError(`its toolCalls are ${describeValue(given)}; they must be a list`);
  if (given.length > MOST_CALLS) throw new InvalidInputError(`it has more than the permitted ${MOST_CALLS} tool calls`);
  const calls: Call[] = [];
  for (let index = 0; index < given.length; index += 1) calls.push(callOf(given[index], index, calls));
  return calls;
}

function callOf(given: unknown, index: number, before: readonly Call[]): Call {
  if (typeof given !== "object" || given === null) {
    throw new InvalidInputError(
      `its toolCalls[${index}] is ${describeValue(given)}; it must be { id, name, arguments }`,
    );
  }
  const { id, name, arguments: args } = given as Readonly<Record<keyof Call, unknown>>;
  if (!isName(name)) {
    const what = typeof name === "string" ? `a name of ${name.length} characters` : describeValue(name);
    throw new InvalidInputError(`its toolCalls[${index}].name is ${what}; it must be the name of a tool`);
  }
  // Results are sent back under these ids, so no two calls may have the same one.
  const isOwn = isId(id) && !before.some((call) => call.id === id);
  return { id: isOwn ? id : createId("call"), name, arguments: argumentsOf(args, index) };
}

function argumentsOf(given: unknown, index: number): string {
  if (typeof given === "string") return given;
  if (given === undefined || given === null) return "{}";
  const json = toJson(given);
  if (json.ok) return JSON.stringify(json.json);
  const { path, message } = json.issue;
  throw new InvalidInputError(`its toolCalls[${index}].arguments are not valid JSON: ${renderPath(path)}: ${message}`);
}

/** Reasoning is only useful to its provider: if it is not valid JSON, the answer is kept without it. */
function reasoningOf(given: unknown): { readonly reasoning?: JsonObject; readonly lost: string | undefined } {
  if (given === undefined || given === null) return { lost: undefined };
  const copied = toJson(given);
  if (!copied.ok) return { lost: `${renderPath(copied.issue.path)}: ${copied.issue.message}` };
  if (isObject(copied.json)) return { reasoning: copied.json, lost: undefined };
  return { lost: `it is ${describeValue(given)}, not an object` };
}

function isObject(json: Json): json is JsonObject {
  return typeof json === "object" && json !== null && !Array.isArray(json);
}

function isId(value: unknown): value is string {
  return typeof value === "string" && value.length <= LONGEST_ID && value !== "";
}

function isName(value: unknown): value is string {
  return typeof value === "string" && value.length <= LONGEST_NAME;
}

/** The answer was generated, so it is billed: at the reported usage, or at the full reservation. */
function brokenAnswer({ kind, message }: BrokenAnswer, usage: Usage | undefined): ModelError {
  return new ModelError(message, {
    retryable: kind === "incomplete",
    mayHaveBeenSent: true,
    partialInputTokens: usage?.inputTokens,
    partialOutputTokens: usage?.outputTokens,
    details: { kind },
  });
}

/** Billed like a broken answer. */
function unusable(words: string, usage: Usage | undefined): ModelError {
  return new ModelError(`The model's adapter returned an unusable answer: ${words}.`, {
    retryable: true,
    mayHaveBeenSent: true,
    partialInputTokens: usage?.inputTokens,
    partialOutputTokens: usage?.outputTokens,
    details: { kind: "malformed" },
  });
}
