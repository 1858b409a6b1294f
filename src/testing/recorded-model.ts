import { fileURLToPath } from "node:url";
import { resolve } from "node:path";
import {
  anyRule,
  createRedactor,
  listRule,
  oneOfRule,
  type OptionsSchema,
  optionsOf,
  reading,
  type Redactor,
  ruleOf,
  shortHash,
  stableStringify,
} from "../base/index.ts";
import { InvalidInputError, ModelError } from "../errors/index.ts";
import {
  compositionOf,
  countPromptTokens,
  type GenerateOptions,
  type LanguageModel,
  type ModelDelta,
  modelOf,
} from "../model/index.ts";
import type { Content, JsonObject, Message, ModelRequest, ModelResponse } from "../state/index.ts";
import { type Difference, differenceOf } from "./compare-requests.ts";
import {
  addToRecording,
  modelOfRecording,
  type ModelRecording,
  readModelRecording,
  type RecordedCall,
  type RecordedError,
  type RecordedModelFacts,
} from "./model-recording.ts";

/** Options of `recordedModel()`. */
export interface RecordedModelOptions {
  /** The file of recorded calls, as JSON; its folder is created. Relative paths start at the working directory. */
  readonly file: string | URL;
  /**
   * `auto`: recorded calls are replayed, others are made and recorded. `replay`: nothing is called, and a call that is not recorded is an error.
   * `record`: all calls are made, and replace recorded ones. While the environment variable `CI` is set, `auto` is `replay`, and `record` is
   * refused. Default `auto`.
   */
  readonly mode?: "auto" | "replay" | "record" | undefined;
  /**
   * Texts of at least 4 characters that the file must not contain, besides secrets of the environment and everything that looks like a key.
   * Default: none.
   */
  readonly secrets?: readonly string[] | undefined;
}

const recordedSchema: OptionsSchema<RecordedModelOptions> = {
  rules: {
    file: ruleOf("a path or a file: URL", (value) => (typeof value === "string" && value !== "") || isFileUrl(value)),
    mode: oneOfRule("auto", "replay", "record"),
    secrets: listRule("a list of texts", anyRule),
  },
  needed: ["file"],
  instead: { path: "file", redact: "secrets" },
};

function isFileUrl(value: unknown): boolean {
  return value instanceof URL && value.protocol === "file:";
}

/**
 * A model whose calls are recorded in a file and replayed from it: tests of agents run with real answers, offline, in milliseconds, at no cost.
 * A call is found by the hash of model and whole request (messages, tools, settings, response format) and by its occurrence: the second equal
 * request gets the second recorded answer. Deltas, tool calls, reasoning, usage and errors of the provider are replayed as recorded; ids and times
 * of messages do not count. Secrets are redacted in the file and before hashing.
 *
 * @param model The model to record; it keeps its name, context window, prices and token counts. `undefined` is accepted in the mode `replay`,
 * where these come from the file.
 * @throws InvalidInputError for wrong options, for a model made of others (record each of them), and in the mode `record` while `CI` is set.
 */
export function recordedModel(model: LanguageModel | string | undefined, given: RecordedModelOptions): LanguageModel {
  const {
    file,
    mode = "auto",
    secrets = [],
  } = optionsOf<RecordedModelOptions>(given, "recordedModel()", recordedSchema);
  const path = typeof file === "string" ? resolve(file) : fileURLToPath(file);
  const redactor = createRedactor({ secrets });
  if (mode === "record" && isCi()) throw refusedInCi();
  if (model === undefined) {
    if (mode === "replay") return new RecordedModel(undefined, { path, mode, redactor });
    throw new InvalidInputError(`recordedModel(): mode "${mode}" needs a model; only "replay" works without one`);
  }
  const inner = reading("recordedModel(): model", () => modelOf("recordedModel(): model", model));
  if (compositionOf(inner)) {
    throw new InvalidInputError(
      `recordedModel(): "${inner.name}" is made of other models; record each of them: fallbackModel([recordedModel(…), recordedModel(…)])`,
    );
  }
  return new RecordedModel(inner, { path, mode, redactor });
}

function refusedInCi(): InvalidInputError {
  return new InvalidInputError(
    'recordedModel(): mode "record" calls the model, which is not allowed while the environment variable CI is set; use "auto" or "replay"',
  );
}

/** Whether the environment variable `CI` is set; `CI=false` and `CI=0` mean that it is not. */
export function isCi(): boolean {
  const { CI: value = "" } = process.env;
  return value !== "" && value !== "0" && value.toLowerCase() !== "false";
}

interface RecordedPlace {
  readonly path: string;
  readonly mode: "auto" | "replay" | "record";
  readonly redactor: Redactor;
}

/**
 * Owns the count of equal requests. Other processes may record into the file; it is read at the first call, and again with each
 * call that is added.
 */
class RecordedModel implements LanguageModel {
  readonly name: string;
  readonly provider: string;
  readonly contextWindow?: number | undefined;
  readonly hostedTools?: readonly string[] | undefined;
  readonly server?: string | undefined;
  readonly boundPromptTokens?: NonNullable<LanguageModel["boundPromptTokens"]>;
  readonly writesLongCache?: NonNullable<LanguageModel["writesLongCache"]>;
  readonly #inner: LanguageModel | undefined;
  readonly #place: RecordedPlace;
  readonly #occurrences = new Map<string, number>();
  #recording: Promise<ModelRecording | undefined> | undefined;

  constructor(inner: LanguageModel | undefined, place: RecordedPlace) {
    this.#inner = inner;
    this.#place = place;
    const facts = inner ?? modelOfRecording(place.path);
    this.name = facts.name;
    this.provider = facts.provider;
    if (facts.contextWindow !== undefined) this.contextWindow = facts.contextWindow;
    if (facts.hostedTools !== undefined) this.hostedTools = facts.hostedTools;
    if (facts.server !== undefined) this.server = facts.server;
    if (inner?.boundPromptTokens) this.boundPromptTokens = inner.boundPromptTokens.bind(inner);
    if (inner?.writesLongCache) this.writesLongCache = inner.writesLongCache.bind(inner);
  }

  countPromptTokens(request: ModelRequest): number | Promise<number> {
    return this.#inner ? this.#inner.countPromptTokens(request) : countPromptTokens(request);
  }

  async generate(request: ModelRequest, options: GenerateOptions): Promise<ModelResponse> {
    const { signal } = options;
    signal.throwIfAborted();
    const { redactor, mode, path } = this.#place;
    // The variable may have been set after the model was made.
    if (mode === "record" && isCi()) throw refusedInCi();
    const form = redactor.value(recordedForm(request)) as JsonObject;
    const key = shortHash(stableStringify({ provider: this.provider, model: this.name, request: form }));
    // Counted before anything is awaited, so that equal requests are numbered in the order of their calls.
    const occurrence = (this.#occurrences.get(key) ?? 0) + 1;
    this.#occurrences.set(key, occurrence);
    if (mode !== "record") {
      this.#recording ??= readModelRecording(path);
      const recording = await this.#recording;
      const call = recording?.calls.find((one) => one.key === key && one.occurrence === occurrence);
      if (call) return replayed(call, options);
      if (mode === "replay" || isCi()) throw this.#missed(recording, { form, key, occurrence });
    }
    return await this.#record(request, { key, occurrence, form }, options);
  }

  async #record(
    request: ModelRequest,
    { key, occurrence, form }: Asked,
    options: GenerateOptions,
  ): Promise<ModelResponse> {
    const inner = this.#inner;
    if (!inner) throw new InvalidInputError("a recorded model without a model calls nothing");
    const { redactor, mode, path } = this.#place;
    const deltas: ModelDelta[] = [];
    const onDelta = (delta: ModelDelta): void => {
      deltas.push({ ...delta });
      options.onDelta?.(delta);
    };
    const { signal, call: identity } = options;
    let outcome: Pick<RecordedCall, "response"> | Pick<RecordedCall, "error">;
    let finish: () => ModelResponse;
    try {
      const response = await inner.generate(request, { signal, onDelta, ...(identity ? { call: identity } : {}) });
      outcome = { response: redactor.value(plain(response)) as ModelResponse };
      finish = () => response;
    } catch (error) {
      if (!(error instanceof ModelError) || signal.aborted) throw error;
      outcome = { error: redactor.value(errorForm(error)) as RecordedError };
      finish = () => {
        throw error;
      };
    }
    const call: RecordedCall = { key, occurrence, request: form, deltas: shownDeltas(deltas, redactor), ...outcome };
    this.#recording = addToRecording(path, { call, model: factsOf(inner) }, mode === "record");
    await this.#recording;
    return finish();
  }

  #missed(recording: ModelRecording | undefined, { form, key, occurrence }: Asked): ModelError {
    const { path, mode } = this.#place;
    const how =
      mode === "replay"
        ? 'Record it with the mode "auto" outside CI.'
        : "While CI is set no model is called: record it locally.";
    return new ModelError(`${path} has no answer for this request of "${this.name}". ${why()} ${how}`, {
      retryable: false,
      mayHaveBeenSent: false,
      details: { kind: "unrecorded" },
    });

    function why(): string {
      const calls = recording?.calls ?? [];
      if (calls.length === 0) return "The file has no calls.";
      const known = calls.filter((one) => one.key === key).length;
      if (known > 0) return `It is recorded ${known} times, and was made ${occurrence} times.`;
      const nearest = nearestOf(calls, form);
      if (!nearest) return `None of its ${calls.length} requests is like it; the model may have another name.`;
      const { call, difference } = nearest;
      if (!difference) {
        return (
          `The recorded request ${call.key} (occurrence ${call.occurrence}) is equal, but has another key: it belongs to a model with another ` +
          "name or provider, was edited by hand, or contains a secret that only one of both machines redacts (name it in secrets on both)."
        );
      }
      return `The nearest recorded request is ${call.key} (occurrence ${call.occurrence}); its ${difference.part} differs first:\n${difference.diff}\n`;
    }
  }
}

interface Asked {
  readonly form: JsonObject;
  readonly key: string;
  readonly occurrence: number;
}

function factsOf({ provider, name, contextWindow, hostedTools, server }: LanguageModel): RecordedModelFacts {
  return {
    provider,
    name,
    ...(contextWindow === undefined ? {} : { contextWindow }),
    ...(hostedTools === undefined ? {} : { hostedTools: [...hostedTools] }),
    ...(server === undefined ? {} : { server }),
  };
}

/** The request as a model sees it, without ids of agents, turns and artifacts, which differ in each run. */
function recordedForm({ messages, ...others }: ModelRequest): JsonObject {
  return plain({ ...others, messages: messages.map(messageForm) }) as JsonObject;
}

function messageForm(message: Message) {
  const { role } = message;
  const content = contentForm(message.content);
  if (message.role === "tool") {
    return { role, providerId: message.providerId, content, ...(message.isError ? { isError: true } : {}) };
  }
  if (message.role !== "assistant") return { role, content };
  const { toolCalls, reasoning } = message;
  const calls = toolCalls?.map(({ providerId, name, arguments: text }) => ({ providerId, name, arguments: text }));
  return { role, content, ...(calls ? { toolCalls: calls } : {}), ...(reasoning ? { reasoning } : {}) };
}

function contentForm(content: Content) {
  if (typeof content === "string") return content;
  return content.map((part) => {
    if (part.type !== "file") return part;
    const { artifactId: _ofRun, ...sent } = part;
    return sent;
  });
}

/** A JSON copy: fields that are undefined are left out. */
function plain(value: unknown): unknown {
  return JSON.parse(JSON.stringify(value));
}

function errorForm(error: ModelError): RecordedError {
  const { message, retryable, mayHaveBeenSent, status, retryAfterMs, partialInputTokens, partialOutputTokens } = error;
  const details = plain(error.details) as NonNullable<RecordedError["details"]>;
  return {
    message,
    retryable,
    mayHaveBeenSent,
    ...(status === undefined ? {} : { status }),
    ...(retryAfterMs === undefined ? {} : { retryAfterMs }),
    ...(partialInputTokens === undefined ? {} : { partialInputTokens }),
    ...(partialOutputTokens === undefined ? {} : { partialOutputTokens }),
    ...(Object.keys(details).length === 0 ? {} : { details }),
  };
}

/**
 * The deltas without secrets. A secret may be spread over several deltas, so if their joined text contains one, the redacted text becomes a
 * single delta.
 */
function shownDeltas(deltas: readonly ModelDelta[], redactor: Redactor): ModelDelta[] {
  const streams = Map.groupBy(deltas, streamOf);
  const replaced = new Map<string, string>();
  for (const [stream, parts] of streams) {
    const text = parts.map((delta) => ("text" in delta ? delta.text : "")).join("");
    const shown = redactor.text(text);
    if (shown !== text) replaced.set(stream, shown);
  }
  const done = new Set<string>();
  return deltas.flatMap((delta) => {
    const stream = streamOf(delta);
    const text = replaced.get(stream);
    if (text === undefined || !("text" in delta)) return [redactor.value(delta) as ModelDelta];
    if (done.has(stream)) return [];
    done.add(stream);
    return [{ ...delta, text }];
  });
}

function streamOf(delta: ModelDelta): string {
  return delta.type === "tool-arguments" ? `${delta.type} ${delta.index}` : delta.type;
}

function replayed({ deltas, response, error, key }: RecordedCall, { onDelta, signal }: GenerateOptions): ModelResponse {
  for (const delta of deltas) {
    signal.throwIfAborted();
    onDelta?.({ ...delta });
  }
  if (error) {
    const { message, details, ...options } = error;
    throw new ModelError(message, { ...options, ...(details ? { details } : {}) });
  }
  if (response) return structuredClone(response) as ModelResponse;
  throw new InvalidInputError(
    `the recorded call ${key} has neither a response nor an error; delete it to record it anew`,
  );
}

/** The recorded request with the longest common beginning, and the first part that differs from it; `undefined` if none does. */
function nearestOf(
  calls: readonly RecordedCall[],
  form: JsonObject,
): { readonly call: RecordedCall; readonly difference: Difference | undefined } | undefined {
  let best: { call: RecordedCall; differences: readonly Difference[]; score: number } | undefined;
  for (const call of calls) {
    const differences = formDifferences(call.request, form);
    const score = commonBeginning(call.request["messages"], form["messages"]) - differences.length * LESS_FOR_A_PART;
    if (!best || score > best.score) best = { call, differences, score };
  }
  return best && { call: best.call, difference: best.differences[0] };
}

/** A part that differs weighs less than a message that is equal. */
const LESS_FOR_A_PART = 0.1;

function formDifferences(recorded: RecordedCall["request"], form: JsonObject): Difference[] {
  const names = [...new Set([...Object.keys(form), ...Object.keys(recorded)])].toSorted();
  return names.flatMap((name) => differenceOf(name, recorded[name], form[name]));
}

function commonBeginning(one: unknown, other: unknown): number {
  if (!Array.isArray(one) || !Array.isArray(other)) return 0;
  let length = 0;
  while (length < one.length && length < other.length && differenceOf("", one[length], other[length]).length === 0) {
    length += 1;
  }
  return length;
}
