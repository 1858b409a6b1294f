import type { FinishReason, JsonObject, ModelResponse } from "../state/index.ts";
import { answerError } from "./answer-error.ts";
import type { ModelDelta } from "./language-model.ts";
import { ReasoningParts } from "./reasoning-parts.ts";
import { ToolCallParts } from "./tool-call-parts.ts";
import { type WireObject, wireArray, wireObject, wireParts, wireText } from "./wire-values.ts";
import { type ReportedUsage, UsageReport } from "./wire-usage.ts";

/** An answer as it came; of `usage` it has what the server sent. */
export type AccumulatedAnswer = Omit<ModelResponse, "usage"> & { readonly usage: ReportedUsage | undefined };

/**
 * Makes one answer out of Chat Completions chunks, or of one whole completion. Pure: no clock, no input or output.
 * Owns what has arrived of one answer. It does not decide about retries, and counts no tokens.
 * 1. Each piece of text is reported once and is in the answer once.
 * 2. The calls that are there decide whether tools are wanted, not the finish reason.
 * 3. An answer is finished when its finish reason has come, or when it came whole.
 */
export class AnswerAccumulator {
  readonly #calls = new ToolCallParts();
  readonly #reasoning = new ReasoningParts();
  #content = "";
  #refusal = "";
  #finishReason: string | undefined;
  #isWhole = false;
  readonly #usage = new UsageReport();
  #model = "";
  #id = "";

  /** Adds a parsed chunk or completion. Throws `ModelError` when it carries an error, or is not an answer at all. */
  add(value: unknown, onDelta?: (delta: ModelDelta) => void): void {
    const chunk = wireObject(value);
    if (chunk === undefined) return;
    if (this.#id === "") this.#id = wireText(chunk["id"]);
    if (this.#model === "") this.#model = wireText(chunk["model"]);
    const choice = wireObject(wireArray(chunk["choices"])[0]);
    for (const place of [chunk, choice, wireObject(chunk["x_groq"])]) this.#usage.add(place?.["usage"]);
    const failed = choice?.["error"] ?? chunk["error"];
    if (failed !== undefined && failed !== null) throw answerError(failed);
    if (chunk["object"] === "error") throw answerError(chunk);
    if (choice === undefined) return;
    const delta = wireObject(choice["delta"]);
    if (delta !== undefined) this.#addDelta(delta, false, onDelta);
    else this.#addMessage(wireObject(choice["message"]), onDelta);
    const reason = choice["finish_reason"];
    if (typeof reason === "string" && reason !== "") this.#finishReason = reason;
  }

  /** Whether nothing more can come but usage. */
  get isFinished(): boolean {
    return this.#isWhole || this.#finishReason !== undefined;
  }

  /** Usage that the server has told so far. */
  get usage(): ReportedUsage | undefined {
    return this.#usage.read();
  }

  /** All that was generated so far, reasoning and calls included: what is counted when the server tells no usage. */
  generatedText(): string {
    return this.#reasoning.text() + this.#content + this.#refusal + this.#calls.text();
  }

  /** The answer so far. `requested` names the model where the server did not. */
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
    if (text !== "") {
      this.#content += text;
      onDelta?.({ type: "text", text });
    }
    this.#refusal += wireText(delta["refusal"]);
    for (const call of wireArray(delta["tool_calls"])) this.#calls.add(call, isWhole);
  }

  #reason(): FinishReason {
    const hasCalls = !this.#calls.isEmpty;
    switch (this.#finishReason) {
      case "length":
      case "content_filter":
        return this.#finishReason;
      case "stop":
      case "tool_calls":
      case "function_call":
        return hasCalls ? "tool_calls" : "stop";
      default:
        return hasCalls ? "tool_calls" : "unknown";
    }
  }
}
