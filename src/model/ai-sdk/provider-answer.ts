import { toJson } from "../../base/index.ts";
import { ModelError } from "../../errors/index.ts";
import type { AnswerSource, FinishReason, Json, JsonObject, ModelResponse, ModelWarning } from "../../state/index.ts";
import { answerEnd, type BrokenAnswer, brokenBy } from "../finish-reason.ts";
import type { AnswerInProgress } from "../guarded-call.ts";
import { type ModelDelta, MOST_CALLS } from "../language-model.ts";
import { withOpaqueTokens } from "../reasoning-size.ts";
import { tooManyCalls } from "../tool-call-parts.ts";
import { isTokenCount, type ReportedUsage } from "../usage.ts";
import { type WireObject, wireArray, wireObject, wireText } from "../wire-values.ts";
import { streamFailure } from "./provider-failure.ts";

interface WrittenPart {
  readonly type: "text" | "reasoning" | "call";
  readonly id: string;
  text: string;
  /** The tool of a call. */
  readonly name: string;
  /** Fields of the provider that must be sent back with the part: signatures, ids, encrypted reasoning. */
  options: Record<string, JsonObject> | undefined;
}

/** A call whose input arrives in pieces. */
interface OpenInput {
  readonly index: number;
  readonly name: string;
  /** The input so far; not part of the answer before the whole call has arrived. */
  text: string;
  /** Whether the pieces are the JSON text of the input. */
  readonly isJson: boolean;
}

/**
 * Assembles one answer from the parts of a stream of the AI SDK; unknown parts are ignored.
 * 1. Each piece of text is reported once and is in the answer once.
 * 2. The calls in the answer decide whether tools are wanted, not the finish reason.
 * 3. An answer without a part `finish` is incomplete.
 * 4. Texts, parts, calls and sources are bounded, since the provider's package bounds none of them.
 */
export class ProviderAnswer implements AnswerInProgress {
  readonly #parts: WrittenPart[] = [];
  readonly #inputs = new Map<string, OpenInput>();
  readonly #sources: AnswerSource[] = [];
  readonly #warnings: ModelWarning[];
  #finish: WireObject | undefined;
  #model = "";
  #length = 0;
  /** Whether the provider has warned that it ignores the response format. */
  ignoresFormat = false;

  /** @param warnings Those of the adapter. */
  constructor(warnings: readonly ModelWarning[]) {
    this.#warnings = [...warnings];
  }

  /** Adds a part of the stream. Throws `ModelError` for an error in the stream, and for a tool that the provider executes itself. */
  add(value: unknown, onDelta?: (delta: ModelDelta) => void): void {
    const part = wireObject(value) ?? {};
    const type = wireText(part["type"]);
    switch (type) {
      case "text-start":
      case "text-delta":
      case "text-end":
        this.#addText("text", part, onDelta);
        break;
      case "reasoning-start":
      case "reasoning-delta":
      case "reasoning-end":
        this.#addText("reasoning", part, onDelta);
        break;
      case "tool-input-start":
        this.#openInput(wireText(part["id"]), part, onDelta);
        break;
      case "tool-input-delta":
        this.#addInput(part, onDelta);
        break;
      case "tool-call":
        this.#addCall(part, onDelta);
        break;
      case "source":
        this.#addSource(part);
        break;
      case "stream-start":
        this.#readWarnings(part["warnings"]);
        break;
      case "response-metadata":
        this.#model = wireText(part["modelId"]) || this.#model;
        break;
      case "finish":
        this.#finish = part;
        break;
      case "error": {
        const failure = streamFailure(part["error"]);
        if (failure !== undefined) throw failure;
        break;
      }
      default:
    }
  }

  get isFinished(): boolean {
    return this.#finish !== undefined;
  }

  get fault(): ModelError | undefined {
    if (this.#finish === undefined) {
      return incomplete("The model's answer ended before it was complete: no finish reason came.");
    }
    const { unified, raw } = finishOf(this.#finish);
    if (unified === "error" || unified === "interrupted") {
      return incomplete(`The provider broke off its answer: the finish reason is "${raw === "" ? unified : raw}".`);
    }
    // Several packages report `other` without a reason if the body ends in the middle of an answer.
    if (unified === "other" && raw === "") {
      return incomplete("The model's answer ended before it was complete: no finish reason came.");
    }
    const reason = unified === "other" || answerEnd(raw) === "too_long" ? raw : unified;
    const broken = brokenBy(reason);
    return broken && brokenAnswer(broken);
  }

  get usage(): ReportedUsage | undefined {
    const usage = wireObject(this.#finish?.["usage"]);
    const input = wireObject(usage?.["inputTokens"]) ?? {};
    const output = wireObject(usage?.["outputTokens"]) ?? {};
    const read = count(input["cacheRead"]);
    const write = count(input["cacheWrite"]);
    const reasoning = count(output["reasoning"]);
    const inputTokens = count(input["total"]) ?? sum(count(input["noCache"]), read, write);
    const outputTokens = count(output["total"]) ?? sum(count(output["text"]), reasoning);
    // Every call has a prompt.
    const hasInput = inputTokens !== undefined && inputTokens > 0;
    if (!hasInput && outputTokens === undefined) return undefined;
    return {
      ...(hasInput ? { inputTokens } : {}),
      ...(outputTokens === undefined ? {} : { outputTokens }),
      ...(isPart(read, inputTokens) ? { cachedInputTokens: read } : {}),
      ...(write !== undefined && write > 0 ? { cacheWriteTokens: write, ...this.#longWrites(usage, write) } : {}),
      ...(isPart(reasoning, outputTokens) ? { reasoningTokens: reasoning } : {}),
    };
  }

  #longWrites(usage: WireObject | undefined, write: number): Pick<ReportedUsage, "longCacheWriteTokens"> {
    const byTtl = wireObject(wireObject(usage?.["raw"])?.["cache_creation"]);
    const metadata = wireObject(this.#finish?.["providerMetadata"]);
    const bedrock = wireObject(wireObject(metadata?.["amazonBedrock"] ?? metadata?.["bedrock"])?.["usage"]);
    const entries = wireArray(bedrock?.["cacheDetails"]).map((entry) => wireObject(entry) ?? {});
    const ofBedrock = entries.map(({ ttl, inputTokens }) => (ttl === "1h" ? (count(inputTokens) ?? 0) : 0));
    const long = count(byTtl?.["ephemeral_1h_input_tokens"]) ?? sum(...ofBedrock);
    return long === undefined ? {} : { longCacheWriteTokens: Math.min(long, write) };
  }

  generatedText(): string {
    const written = this.#parts.map(({ name, text }) => name + text).join("");
    const called = new Set(this.#parts.map(({ type, id }) => (type === "call" ? id : undefined)));
    const open = [...this.#inputs].map(([id, { name, text }]) => (called.has(id) ? "" : name + text));
    return written + open.join("");
  }

  answer(requested: string): Omit<ModelResponse, "usage"> {
    const calls = this.#parts.filter(({ type }) => type === "call");
    // In the order in which they were begun, which `index` of the deltas names.
    calls.sort((a, b) => (this.#inputs.get(a.id)?.index ?? 0) - (this.#inputs.get(b.id)?.index ?? 0));
    const reasoning = this.#reasoning();
    return {
      content: this.#parts.map(({ type, text }) => (type === "text" ? text : "")).join(""),
      toolCalls: calls.map(({ id, name, text }) => ({ id, name, arguments: text })),
      ...(reasoning === undefined ? {} : { reasoning }),
      finishReason: this.#reason(calls.length > 0),
      model: this.#model === "" ? requested : this.#model,
      ...(this.#warnings.length === 0 ? {} : { warnings: this.#warnings }),
      ...(this.#sources.length === 0 ? {} : { sources: this.#sources }),
    };
  }

  #addText(type: "text" | "reasoning", given: WireObject, onDelta: ((delta: ModelDelta) => void) | undefined): void {
    const id = wireText(given["id"]);
    // Some providers use an id again for a later part.
    const isNew = given["type"] === `${type}-start`;
    let part = isNew ? undefined : this.#parts.findLast((one) => one.type === type && one.id === id);
    if (part === undefined) {
      part = { type, id, text: "", name: "", options: undefined };
      this.#addPart(part);
    }
    keepOptions(part, given["providerMetadata"]);
    const text = wireText(given["delta"]);
    if (text === "") return;
    this.#measure(text);
    part.text += text;
    onDelta?.({ type, text });
  }

  #addPart(part: WrittenPart): void {
    if (this.#parts.length === MOST_PARTS) throw tooLong(`${MOST_PARTS} parts`);
    this.#parts.push(part);
  }

  #measure(text: string): void {
    this.#length += text.length;
    if (this.#length > MOST_CHARACTERS) throw tooLong(`${MOST_CHARACTERS} characters`);
  }

  #openInput(id: string, part: WireObject, onDelta: ((delta: ModelDelta) => void) | undefined): OpenInput {
    if (part["providerExecuted"] === true) throw executedByProvider(wireText(part["toolName"]));
    const index = this.#inputs.size;
    if (index === MOST_CALLS) throw tooManyCalls();
    const name = wireText(part["toolName"]);
    const input = { index, name, text: "", isJson: part["inputEncoding"] !== "text" };
    this.#inputs.set(id, input);
    onDelta?.({ type: "tool-call", index, id, name });
    return input;
  }

  #addInput(part: WireObject, onDelta: ((delta: ModelDelta) => void) | undefined): void {
    const input = this.#inputs.get(wireText(part["id"]));
    const text = wireText(part["delta"]);
    if (input === undefined || text === "") return;
    this.#measure(text);
    input.text += text;
    if (input.isJson) onDelta?.({ type: "tool-arguments", index: input.index, text });
  }

  #addCall(given: WireObject, onDelta: ((delta: ModelDelta) => void) | undefined): void {
    const name = wireText(given["toolName"]);
    if (given["providerExecuted"] === true) throw executedByProvider(name);
    const value = given["input"];
    const text = typeof value === "string" ? value : JSON.stringify(value ?? {});
    const id = wireText(given["toolCallId"]);
    const input = this.#inputs.get(id) ?? this.#openInput(id, given, onDelta);
    const isReported = input.isJson && input.text !== "";
    if (!isReported && text !== "") onDelta?.({ type: "tool-arguments", index: input.index, text });
    this.#measure(text);
    const part: WrittenPart = { type: "call", id, text, name, options: undefined };
    keepOptions(part, given["providerMetadata"]);
    this.#addPart(part);
  }

  /** Each source once. */
  #addSource({ sourceType, id, url, title, filename, mediaType }: WireObject): void {
    if (this.#sources.length === MOST_SOURCES) return;
    const fields = { id, url, title: title ?? filename, mediaType };
    const texts = Object.entries(fields).filter(([, value]) => typeof value === "string" && value !== "");
    const type = sourceType === "document" ? "document" : "url";
    const isKnown = type === "url" && this.#sources.some((one) => one.type === "url" && one.url === url);
    if (!isKnown) this.#sources.push({ type, ...Object.fromEntries(texts) });
  }

  #readWarnings(warnings: unknown): void {
    if (!Array.isArray(warnings)) return;
    for (const given of warnings) this.#warnings.push(warningOf(wireObject(given) ?? {}));
    this.ignoresFormat ||= warnings.some((given) => {
      const { type, feature, setting } = wireObject(given) ?? {};
      return type !== "other" && (feature === "responseFormat" || setting === "responseFormat");
    });
  }

  /** The parts in their order, without what the message has anyway; `undefined` if the message has all of it. */
  #reasoning(): JsonObject | undefined {
    const parts = this.#parts.filter(({ type, text, options }) => type !== "text" || text !== "" || options);
    if (!parts.some(({ type, options }) => type === "reasoning" || options !== undefined)) return undefined;
    const stored = parts.map(({ type, id, text, options }): JsonObject => {
      const own = options === undefined ? {} : { options };
      if (type === "reasoning") return { type, text, ...own };
      return type === "text" ? { type, length: text.length, ...own } : { type, id, ...own };
    });
    return withOpaqueTokens({ parts: stored }, this.usage?.reasoningTokens);
  }

  #reason(hasCalls: boolean): FinishReason {
    const { unified, raw } = this.#finish === undefined ? { unified: "", raw: "" } : finishOf(this.#finish);
    const end = answerEnd(unified === "other" ? raw : unified);
    if (end === "length" || end === "content_filter") return end;
    if (hasCalls) return "tool_calls";
    return end === "stop" ? "stop" : "unknown";
  }
}

/** Most characters of texts and calls, most parts, and most sources; further sources are left out. */
const MOST_CHARACTERS = 2 ** 26;
const MOST_PARTS = 10_000;
const MOST_SOURCES = 1_000;

/** Not retryable: another attempt would cost as much and most likely fail again. */
function tooLong(most: string): ModelError {
  return new ModelError(`The model's answer is too long: it has more than the permitted ${most}.`, {
    retryable: false,
    mayHaveBeenSent: true,
    details: { kind: "malformed" },
  });
}

function executedByProvider(tool: string): ModelError {
  return new ModelError(
    `The provider has executed the tool "${tool.slice(0, 100)}" itself. Its cost and its effects cannot be controlled here: leave it out of providerOptions.`,
    { retryable: false, mayHaveBeenSent: true, details: { kind: "configuration" } },
  );
}

function warningOf({ type, feature, setting, details, message }: WireObject): ModelWarning {
  const subject = wireText(feature) || wireText(setting);
  const text = wireText(message) || wireText(details);
  const ofSubject = `the provider reports ${wireText(type)}: ${subject}`;
  const words = subject === "" ? text : `${ofSubject}${text === "" ? "" : ` (${text})`}`;
  return { code: wireText(type) || "other", message: words };
}

/** `v3` providers of the first releases report the reason as a text. */
function finishOf(finish: WireObject): { readonly unified: string; readonly raw: string } {
  const reason = finish["finishReason"];
  if (typeof reason === "string") return { unified: reason === "unknown" ? "other" : reason, raw: "" };
  const { unified, raw } = wireObject(reason) ?? {};
  return { unified: wireText(unified) || "other", raw: wireText(raw) };
}

function incomplete(message: string): ModelError {
  return brokenAnswer({ kind: "incomplete", message });
}

function brokenAnswer({ kind, message }: BrokenAnswer): ModelError {
  return new ModelError(message, { retryable: kind === "incomplete", mayHaveBeenSent: true, details: { kind } });
}

function count(value: unknown): number | undefined {
  return isTokenCount(value) ? value : undefined;
}

function isPart(part: number | undefined, whole: number | undefined): part is number {
  return part !== undefined && whole !== undefined && part <= whole;
}

/** `undefined` if no count is known. */
function sum(...counts: readonly (number | undefined)[]): number | undefined {
  const known = counts.filter((one) => one !== undefined);
  return known.length === 0 ? undefined : known.reduce((total, one) => total + one, 0);
}

/** Adds the provider's fields to those that the part has; later values replace earlier ones. */
function keepOptions(part: WrittenPart, metadata: unknown): void {
  for (const [provider, fields] of Object.entries(wireObject(metadata) ?? {})) {
    const json = toJson(fields);
    const own = json.ok ? jsonObject(json.json) : undefined;
    if (own === undefined || Object.keys(own).length === 0) continue;
    part.options = { ...part.options, [provider]: { ...part.options?.[provider], ...own } };
  }
}

function jsonObject(json: Json): JsonObject | undefined {
  return typeof json === "object" && json !== null && !Array.isArray(json) ? (json as JsonObject) : undefined;
}
