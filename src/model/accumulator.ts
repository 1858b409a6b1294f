import type { FinishReason, Json, JsonObject, ModelResponse } from "../state/index.ts";
import { type WireObject, wireObject, wireText, wireArray, wireParts } from "./openai-wire.ts";
import { ModelError } from "../errors/index.ts";
import { answerError } from "./call-failure.ts";
import { answerEnd, brokenBy, type BrokenAnswer } from "./finish-reason.ts";
import type { ModelDelta } from "./language-model.ts";
import { ToolCallParts } from "./tool-call-parts.ts";
import { type ReportedUsage, UsageReport } from "./usage.ts";

/** A complete answer; its `usage` is as the server sent it. */
type AccumulatedAnswer = Omit<ModelResponse, "usage"> & { readonly usage: ReportedUsage | undefined };

/**
 * Assembles one answer from Chat Completions chunks, or from one whole completion. Pure: no clock, no input or output.
 * Owns the received parts of one answer. Does not decide about retries, and does not count tokens.
 * 1. Each piece of text is reported once and is in the answer once.
 * 2. The calls in the answer decide whether tools are wanted, not the finish reason.
 * 3. An answer is finished when its finish reason has come, when it came as one completion, or when the server has ended it.
 * 4. A finished answer is complete only if its finish reason is one of those that end an answer. One completion may have none, if it
 *    has text or calls, and a stream that the server has ended, if it has text alone: a call in it may have been cut.
 */
export class AnswerAccumulator {
  readonly #calls = new ToolCallParts();
  readonly #reasoning = new ReasoningParts();
  #content = "";
  #refusal = "";
  #finishReason: string | undefined;
  #isWhole = false;
  #isEnded = false;
  readonly #usage = new UsageReport();
  #model = "";
  #id = "";

  /** Adds a parsed chunk or completion. Throws `ModelError` if it carries an error, or is not an answer. */
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
    // Behind what came with it, which was paid for.
    const failed = choice?.["error"] ?? chunk["error"];
    if (failed !== undefined && failed !== null) throw answerError(failed);
    if (chunk["object"] === "error") throw answerError(chunk);
    if (choice === undefined) return;
    const reason = choice["finish_reason"];
    if (typeof reason === "string" && reason !== "") this.#finishReason = reason;
  }

  /** Adds the text of a chunk that has nothing else. */
  addText(text: string, onDelta?: (delta: ModelDelta) => void): void {
    if (text === "") return;
    this.#content += text;
    onDelta?.({ type: "text", text });
  }

  /** Notes that the server has ended the answer: nothing more of it comes. */
  end(): void {
    this.#isEnded = true;
  }

  /** Whether only usage can still come. */
  get isFinished(): boolean {
    return this.#isWhole || this.#isEnded || this.#finishReason !== undefined;
  }

  /** Whether the model has begun to write: text, reasoning or a call has come. */
  get hasBegun(): boolean {
    return this.#content !== "" || this.#refusal !== "" || !this.#calls.isEmpty || this.#reasoning.hasBegun;
  }

  /** Why the answer so far is not complete; `undefined` if it is. */
  get fault(): ModelError | undefined {
    const reason = this.#finishReason;
    if (reason === undefined) {
      const hasText = this.#content + this.#refusal !== "";
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

  /** All text generated so far, reasoning and calls included: it is counted when the server reports no usage. */
  generatedText(): string {
    return this.#reasoning.text() + this.#content + this.#refusal + this.#calls.text();
  }

  /** The answer so far. `requested` names the model if the server did not. */
  answer(requested: string): AccumulatedAnswer {
    const seed = this.#id;
    const extras = this.#calls.extras(seed);
    const fields = this.#reasoning.fields();
    const reasoning: JsonObject = { ...fields, ...(extras.length === 0 ? {} : { tool_call_extras: extras }) };
    return {
      content: this.#content === "" ? this.#refusal : this.#content,
      toolCalls: this.#calls.calls(seed),
      ...(fields === undefined && extras.length === 0 ? {} : { reasoning }),
      usage: this.usage,
      finishReason: this.#reason(),
      model: this.#model === "" ? requested : this.#model,
    };
  }

  #addMessage(message: WireObject | undefined, onDelta: ((delta: ModelDelta) => void) | undefined): void {
    if (message === undefined) return;
    // Some streams repeat the whole message at their end.
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
    this.#refusal += wireText(delta["refusal"]);
    for (const call of wireArray(delta["tool_calls"])) this.#calls.add(call, isWhole);
  }

  #reason(): FinishReason {
    const end = this.#finishReason === undefined ? undefined : answerEnd(this.#finishReason);
    if (end === "length" || end === "content_filter") return end;
    if (!this.#calls.isEmpty) return "tool_calls";
    return end === "stop" ? "stop" : "unknown";
  }
}

const withoutReason: BrokenAnswer = {
  kind: "incomplete",
  message: "The model's answer ended before it was complete: no finish reason came.",
};

function modelError({ kind, message }: BrokenAnswer): ModelError {
  return new ModelError(message, { retryable: kind === "incomplete", mayHaveBeenSent: true, details: { kind } });
}

/** The fields of an answer that carry reasoning as text. Servers use one of them, or both with the same content. */
const textFields = ["reasoning_content", "reasoning"] as const;
/** Fields inside `reasoning_details` that arrive in pieces; all others arrive whole. */
const growingFields: ReadonlySet<string> = new Set(["text", "summary", "data"]);

/** Collects the reasoning fields of an answer, so that they can be sent back unchanged. */
class ReasoningParts {
  readonly #texts = new Map<string, string>();
  readonly #details: Detail[] = [];
  readonly #byType = new Map<unknown, Map<unknown, AlikeDetails>>();
  /** Whether one of `textFields` has brought any text. */
  #hasText = false;
  #thinking = "";

  /**
   * Adds the reasoning of a delta or message. Returns the new text for listeners: each piece once, even if it was sent
   * twice.
   */
  add(delta: WireObject): string {
    let news = "";
    for (const field of textFields) {
      const text = delta[field];
      if (typeof text !== "string") continue;
      // An empty text is kept too: some servers refuse a message with calls that had the field and comes back without it.
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

  /** Reasoning text so far, for counting. */
  text(): string {
    const details = this.#details.map((detail) => wireText(detail["text"]) + wireText(detail["summary"])).join("");
    const longest = [...this.#texts.values(), details].reduce((a, b) => (b.length > a.length ? b : a));
    return longest + this.#thinking;
  }

  /** The fields to send back; `undefined` when there was no reasoning. */
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

/** Details of one type and index. A piece without an id goes on with the last of them, so at most the first has none. */
interface AlikeDetails {
  readonly named: Map<unknown, Detail>;
  unnamed: Detail | undefined;
  last: Detail | undefined;
}
