import type { AnswerSource, FinishReason, Json, JsonObject, ModelResponse } from "../state/index.ts";
import { type WireObject, wireObject, wireText, wireArray, wireParts } from "./wire-values.ts";
import { ModelError } from "../errors/index.ts";
import { answerError } from "./call-failure.ts";
import { answerEnd, brokenBy, type BrokenAnswer } from "./finish-reason.ts";
import type { ModelDelta } from "./language-model.ts";
import { ToolCallParts } from "./tool-call-parts.ts";
import { type ReportedUsage, UsageReport } from "./usage.ts";

/** A complete answer; its `usage` is as the server sent it. */
type AccumulatedAnswer = Omit<ModelResponse, "usage"> & { readonly usage: ReportedUsage | undefined };

/**
 * Assembles one answer from Chat Completions chunks, or from one unstreamed completion. Pure: no clock, no I/O.
 * Owns the received fields of one answer. Does not decide about retries, and does not count tokens.
 * 1. Each piece of text is reported once and occurs in the answer once.
 * 2. Tool calls are wanted if the answer contains calls; its finish reason does not matter.
 * 3. An answer is finished once it has a finish reason, once an unstreamed completion was added, or once the server sent `[DONE]`.
 * 4. A finished answer is complete only if its finish reason is a normal one. The reason may be missing in an unstreamed completion that
 *    has text or calls, and in a stream that ended with `[DONE]` and has only text (a call in such a stream may have been cut).
 */
export class AnswerAccumulator {
  readonly #calls = new ToolCallParts();
  readonly #reasoning = new ReasoningParts();
  #content = "";
  /** Whether part of the content is a refusal of the model. */
  #isRefusal = false;
  #finishReason: string | undefined;
  #isWhole = false;
  #isEnded = false;
  readonly #usage = new UsageReport();
  readonly #sources = new Map<string, AnswerSource>();
  #model = "";
  #id = "";

  /** Adds a parsed chunk or completion. Throws `ModelError` if the server reports an error in it. */
  add(value: unknown, onDelta?: (delta: ModelDelta) => void): void {
    const chunk = wireObject(value);
    if (chunk === undefined) return;
    if (this.#id === "") this.#id = wireText(chunk["id"]);
    if (this.#model === "") this.#model = wireText(chunk["model"]);
    const choice = wireObject(wireArray(chunk["choices"])[0]);
    this.#usage.add(chunk["usage"]);
    this.#usage.add(choice?.["usage"]);
    this.#usage.add(wireObject(chunk["x_groq"])?.["usage"]);
    const delta = wireObject(choice?.["delta"]);
    if (delta !== undefined) this.#addDelta(delta, false, onDelta);
    else this.#addMessage(wireObject(choice?.["message"]), onDelta);
    // After adding the content and usage of the same chunk, which are billed.
    const failed = choice?.["error"] ?? chunk["error"];
    if (failed !== undefined && failed !== null) throw answerError(failed);
    if (chunk["object"] === "error") throw answerError(chunk);
    if (choice === undefined) return;
    const reason = choice["finish_reason"];
    if (typeof reason === "string" && reason !== "") this.#finishReason = reason;
    if (this.isFinished) this.#calls.reportAll(onDelta);
  }

  /** Adds the text of a chunk that contains nothing else. */
  addText(text: string, onDelta?: (delta: ModelDelta) => void): void {
    if (text === "") return;
    this.#content += text;
    onDelta?.({ type: "text", text });
  }

  /** Records that the server has ended the answer. */
  end(onDelta?: (delta: ModelDelta) => void): void {
    this.#isEnded = true;
    this.#calls.reportAll(onDelta);
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  /** Whether only usage can still arrive. */
  get isFinished(): boolean {
    return this.#isWhole || this.#isEnded || this.#finishReason !== undefined;
  }

  /** Whether any text, reasoning or call has arrived. */
  get hasBegun(): boolean {
    return this.#content !== "" || !this.#calls.isEmpty || this.#reasoning.hasBegun;
  }

  /** Why the answer so far is not complete; `undefined` if it is. */
  get fault(): ModelError | undefined {
    const reason = this.#finishReason;
    if (reason === undefined) {
      const hasText = this.#content !== "";
      const isWhole = this.#isWhole && (hasText || !this.#calls.isEmpty);
      return isWhole || (this.#isEnded && hasText && this.#calls.isEmpty) ? undefined : modelError(withoutReason);
    }
    const broken = brokenBy(reason);
    return broken && modelError(broken);
  }

  /** The usage that the server has reported so far. */
  get usage(): ReportedUsage | undefined {
    return this.#usage.read();
  }

  /** All text generated so far, reasoning and calls included; counted when the server reports no usage. */
  generatedText(): string {
    return this.#reasoning.text() + this.#content + this.#calls.text();
  }

  /** The answer so far. `requested` is the model name if the server reported none. */
  answer(requested: string): AccumulatedAnswer {
    const seed = this.#id;
    const extras = this.#calls.extras(seed);
    const fields = this.#reasoning.fields();
    const reasoning: JsonObject = { ...fields, ...(extras.length === 0 ? {} : { tool_call_extras: extras }) };
    return {
      content: this.#content,
      toolCalls: this.#calls.calls(seed),
      ...(fields === undefined && extras.length === 0 ? {} : { reasoning }),
      usage: this.usage,
      finishReason: this.#reason(),
      model: this.#model === "" ? requested : this.#model,
      ...(this.#sources.size === 0 ? {} : { sources: [...this.#sources.values()] }),
    };
  }

  #addMessage(message: WireObject | undefined, onDelta: ((delta: ModelDelta) => void) | undefined): void {
    if (message === undefined) return;
    // Some streams repeat the complete message in their last chunk.
    if (this.#content !== "" || !this.#calls.isEmpty) return;
    this.#isWhole = true;
    this.#addDelta(message, true, onDelta);
  }

  #addDelta(delta: WireObject, isWhole: boolean, onDelta: ((delta: ModelDelta) => void) | undefined): void {
    const thought = this.#reasoning.add(delta);
    if (thought !== "") onDelta?.({ type: "reasoning", text: thought });
    const content = delta["content"];
    const text = typeof content === "string" ? content : wireParts(content, "text", "text");
    this.addText(text, onDelta);
    const refusal = wireText(delta["refusal"]);
    this.#isRefusal ||= refusal !== "";
    this.addText(refusal, onDelta);
    for (const call of wireArray(delta["tool_calls"])) this.#calls.add(call, isWhole, onDelta);
    for (const note of wireArray(delta["annotations"])) this.#addSource(wireObject(wireObject(note)?.["url_citation"]));
  }

  /** Each page once, even if several passages cite it. */
  #addSource(citation: WireObject | undefined): void {
    const url = wireText(citation?.["url"]);
    const title = wireText(citation?.["title"]);
    if (url !== "") this.#sources.set(url, { type: "url", url, ...(title === "" ? {} : { title }) });
  }

  #reason(): FinishReason {
    const end = this.#finishReason === undefined ? undefined : answerEnd(this.#finishReason);
    if (this.#isRefusal) return "content_filter";
    if (end === "length" || end === "content_filter") return end;
    if (!this.#calls.isEmpty) return "tool_calls";
    return end === "stop" ? "stop" : "unknown";
  }
}

const withoutReason: BrokenAnswer = {
  kind: "incomplete",
  message: "The model's answer is incomplete: it has no finish reason.",
};

function modelError({ kind, message }: BrokenAnswer): ModelError {
  return new ModelError(message, { retryable: kind === "incomplete", mayHaveBeenSent: true, details: { kind } });
}

/** The fields that carry reasoning as text. Servers send one of them, or both with the same content. */
const textFields = ["reasoning_content", "reasoning"] as const;
/** Fields inside `reasoning_details` that arrive in pieces; all others arrive at once. */
const growingFields: ReadonlySet<string> = new Set(["text", "summary", "data"]);

/** Collects the reasoning fields of an answer, so that they can be sent back unchanged. */
class ReasoningParts {
  readonly #texts = new Map<string, string>();
  readonly #details: Detail[] = [];
  readonly #byType = new Map<unknown, Map<unknown, AlikeDetails>>();
  /** Whether one of `textFields` has contained any text. */
  #hasText = false;
  #thinking = "";

  /** Adds the reasoning of a delta or message. Returns the text to report: each piece once, even if the server sends it in two fields. */
  add(delta: WireObject): string {
    let news = "";
    for (const field of textFields) {
      const text = delta[field];
      if (typeof text !== "string") continue;
      // Keeps an empty text too: some servers refuse a message with calls if a field that they sent is missing when it is sent back.
      this.#texts.set(field, (this.#texts.get(field) ?? "") + text);
      this.#hasText ||= text !== "";
      if (news === "") news = text;
    }
    for (const entry of wireArray(delta["reasoning_details"])) {
      const text = this.#addDetail(wireObject(entry));
      if (!this.#hasText) news += text;
    }
    const thinking = typeof delta["content"] === "object" ? wireParts(delta["content"], "thinking", "thinking") : "";
    this.#thinking += thinking;
    return news + thinking;
  }

  get hasBegun(): boolean {
    return this.#hasText || this.#thinking !== "" || this.#details.length > 0;
  }

  /** Reasoning text so far, for token counting. */
  text(): string {
    const details = this.#details.map((detail) => wireText(detail["text"]) + wireText(detail["summary"])).join("");
    const longest = [...this.#texts.values(), details].reduce((a, b) => (b.length > a.length ? b : a));
    return longest + this.#thinking;
  }

  /** The fields to send back; `undefined` if the answer has no reasoning. */
  fields(): JsonObject | undefined {
    if (this.#texts.size === 0 && this.#details.length === 0) return undefined;
    const details = this.#details as readonly Json[];
    return { ...Object.fromEntries(this.#texts), ...(details.length === 0 ? {} : { reasoning_details: details }) };
  }

  #addDetail(entry: WireObject | undefined): string {
    if (entry === undefined) return "";
    const news = wireText(entry["text"]) + wireText(entry["summary"]);
    const alike = this.#alike(entry["type"], entry["index"]);
    const id = entry["id"] ?? undefined;
    const last = id === undefined ? alike.last : (alike.named.get(id) ?? alike.unnamed);
    if (last === undefined) {
      const detail = { ...entry };
      this.#details.push(detail);
      alike.last = detail;
      if (id === undefined) alike.unnamed = detail;
      else alike.named.set(id, detail);
      return news;
    }
    for (const [field, value] of Object.entries(entry)) {
      if (value === null || value === undefined) continue;
      last[field] = growingFields.has(field) ? wireText(last[field]) + wireText(value) : value;
    }
    if (id !== undefined && last === alike.unnamed) {
      alike.named.set(id, last);
      alike.unnamed = undefined;
    }
    return news;
  }

  /** The details of this type and index. */
  #alike(type: unknown, index: unknown): AlikeDetails {
    let byIndex = this.#byType.get(type);
    if (byIndex === undefined) this.#byType.set(type, (byIndex = new Map()));
    let alike = byIndex.get(index);
    if (alike === undefined) byIndex.set(index, (alike = { named: new Map(), unnamed: undefined, last: undefined }));
    return alike;
  }
}

type Detail = Record<string, unknown>;

/** Details of one type and index. A piece without an id extends the last detail, so at most the first detail has no id. */
interface AlikeDetails {
  readonly named: Map<unknown, Detail>;
  unnamed: Detail | undefined;
  last: Detail | undefined;
}
