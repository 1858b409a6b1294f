import { ModelError } from "../errors/index.ts";
import type { AnswerSource, FinishReason, JsonObject, ModelResponse, ModelWarning } from "../state/index.ts";
import { answerError } from "./call-failure.ts";
import { answerEnd, brokenBy } from "./finish-reason.ts";
import type { AnswerInProgress } from "./guarded-call.ts";
import { MOST_CALLS } from "./language-model.ts";
import type { ReceivedAnswer } from "./read-answer.ts";
import {
  announce,
  type AnswerItem,
  argumentsIn,
  type CallItem,
  hostedTypes,
  indexOf,
  keyOf,
  type Listener,
  type MessageItem,
  reportArguments,
  sourceIn,
  storedThought,
  textIn,
  TextParts,
  typeOf,
} from "./responses-items.ts";
import { type StoredItem, storedReasoning, textSeparator } from "./responses-reasoning.ts";
import { tooManyCalls } from "./tool-call-parts.ts";
import { type ReportedUsage, UsageReport } from "./usage.ts";
import { type WireObject, wireArray, wireObject, wireText } from "./wire-values.ts";

interface AnswerOptions {
  /** What could not be sent. */
  readonly warnings?: readonly ModelWarning[];
  /** Tools that the server may execute. */
  readonly hostedTools?: readonly string[];
}

/**
 * Assembles one answer of the Responses API from the events of its stream, or from a whole response. Unknown events and items are
 * ignored. Pure: no clock, no I/O. In one file, because all events change the same state.
 * 1. Each piece of text is reported once. The reported text is the content of the answer, unless a server writes two final answers.
 * 2. If the answer has a part of the phase `final_answer`, the last one is the content, and its commentary is reported as reasoning.
 *    Otherwise all texts are the content.
 * 3. Complete items, and the response at the end, replace what came in pieces.
 * 4. An answer is complete only with the event that ends it.
 */
export class ResponsesAnswer implements AnswerInProgress, ReceivedAnswer {
  readonly #items: AnswerItem[] = [];
  /** By `output_index`, or by id if a server sends no index. */
  readonly #byKey = new Map<unknown, AnswerItem>();
  readonly #byId = new Map<string, AnswerItem>();
  readonly #usage = new UsageReport();
  readonly #sources = new Map<string, AnswerSource>();
  readonly #warnings: readonly ModelWarning[];
  readonly #hostedTools: readonly string[];
  #callCount = 0;
  #model = "";
  #status: string | undefined;
  #incompleteReason = "";
  #isEnded = false;
  hasBegun = false;

  constructor({ warnings = [], hostedTools = [] }: AnswerOptions = {}) {
    this.#warnings = warnings;
    this.#hostedTools = hostedTools;
  }

  add(value: unknown, onDelta?: Listener): void {
    const event = wireObject(value);
    if (event === undefined) return;
    const type = wireText(event["type"]);
    const piece = wireText(event["delta"]);
    switch (type) {
      case "response.output_item.added":
        this.#take(event["item"], keyOf(event), { isDone: false }, onDelta);
        break;
      case "response.output_item.done":
        this.#take(event["item"], keyOf(event), { isDone: true }, onDelta);
        break;
      case "response.output_text.delta":
      case "response.refusal.delta": {
        const item = this.#item("message", event, onDelta);
        if (type === "response.refusal.delta") item.isRefusal = true;
        this.#reportText(item, item.text.add(indexOf(event, "content_index"), piece), onDelta);
        break;
      }
      case "response.reasoning_summary_text.delta": {
        const { summary } = this.#item("reasoning", event, onDelta);
        this.#reportThought(summary.addSeparated(indexOf(event, "summary_index"), piece), onDelta);
        break;
      }
      case "response.reasoning_text.delta": {
        const { content } = this.#item("reasoning", event, onDelta);
        this.#reportThought(content.addSeparated(indexOf(event, "content_index"), piece), onDelta);
        break;
      }
      case "response.function_call_arguments.delta": {
        const call = this.#item("call", event, onDelta);
        reportArguments(call, call.arguments.add(0, piece), onDelta);
        break;
      }
      case "response.output_text.annotation.added":
        this.#addSource(event["annotation"]);
        break;
      case "response.created":
      case "response.in_progress":
      case "response.queued":
        this.#note(wireObject(event["response"]));
        break;
      case "response.completed":
      case "response.incomplete":
      case "response.failed":
      case "response.cancelled":
        this.#finish(wireObject(event["response"]) ?? {}, type.slice("response.".length), onDelta);
        break;
      case "error":
        throw answerError(wireObject(event["error"]) ?? event);
      case "":
        this.#addWhole(event, onDelta);
        break;
      default:
    }
  }

  end(onDelta?: Listener): void {
    this.#isEnded = true;
    this.#settle("text", onDelta);
  }

  get isEnded(): boolean {
    return this.#isEnded;
  }

  get isFinished(): boolean {
    return this.#status !== undefined;
  }

  /** Whether the model thinks or a tool of the server runs, so that silence does not mean a stall. */
  get isWorking(): boolean {
    const last = this.#items.at(-1);
    return last !== undefined && !last.isDone && last.type !== "message" && last.type !== "call";
  }

  /** Whether the cost of the answer so far can be counted: of a thought that is not shown, nothing has arrived until it is complete. */
  get isCountable(): boolean {
    return !this.#items.some((item) => item.type === "reasoning" && !item.isDone && item.content.text === "");
  }

  get fault(): ModelError | undefined {
    if (this.#status === "completed") return undefined;
    if (this.#status === undefined) return incomplete("The model's answer is incomplete: its last event is missing.");
    if (this.#status !== "incomplete") {
      return incomplete(`The model server broke off its answer: the response is "${this.#status.slice(0, 100)}".`);
    }
    const broken = brokenBy(this.#incompleteReason);
    if (broken === undefined) return undefined;
    return new ModelError(broken.message, {
      retryable: broken.kind === "incomplete",
      mayHaveBeenSent: true,
      details: { kind: broken.kind },
    });
  }

  get usage(): ReportedUsage | undefined {
    return this.#usage.read();
  }

  generatedText(): string {
    const isReported = this.usage?.outputTokens !== undefined;
    let text = "";
    for (const item of this.#items) {
      if (item.type === "message") text += item.text.text;
      else if (item.type === "call") text += item.name + item.arguments.text;
      // Longer than the thought, so that its cost is never counted too low.
      else if (item.type === "reasoning" && !isReported && item.encrypted !== "") text += item.encrypted;
      else if (item.type === "reasoning") text += item.summary.text + item.content.text;
    }
    return text;
  }

  answer(requested: string): Omit<ModelResponse, "usage"> {
    const { content, stored } = this.#written();
    const reasoning = storedReasoning(stored, this.usage?.reasoningTokens);
    return {
      content,
      toolCalls: this.#calls().map(({ callId, name, arguments: { text } }) => ({
        id: callId,
        name,
        arguments: text.trim() === "" ? "{}" : text,
      })),
      ...(reasoning === undefined ? {} : { reasoning }),
      finishReason: this.#reason(),
      model: this.#model === "" ? requested : this.#model,
      ...(this.#warnings.length === 0 ? {} : { warnings: this.#warnings }),
      ...(this.#sources.size === 0 ? {} : { sources: [...this.#sources.values()] }),
    };
  }

  /** The text of the answer, and its items as they are stored. */
  #written(): { readonly content: string; readonly stored: readonly StoredItem[] } {
    const shown = this.#shown();
    let content = "";
    const stored: StoredItem[] = [];
    for (const item of this.#items) {
      if (item.type === "call") stored.push({ type: "call", id: item.callId });
      else if (item.type === "hosted") stored.push({ type: "hosted", item: item.item });
      else if (item.type === "reasoning") stored.push(...storedThought(item));
      if (item.type !== "message") continue;
      const { text } = item.text;
      const phase = item.phase === undefined ? {} : { phase: item.phase };
      if (text.trim() === "") continue;
      if (!shown.includes(item)) stored.push({ type: "message", text, ...phase });
      else {
        if (content !== "") content += textSeparator;
        content += text;
        stored.push({ type: "message", length: text.length, ...phase });
      }
    }
    return { content, stored };
  }

  /** The messages whose texts are the content. */
  #shown(): readonly MessageItem[] {
    const messages = this.#items.filter((item) => item.type === "message");
    const last = messages.findLast(({ phase, text }) => phase === "final_answer" && text.text.trim() !== "");
    return last === undefined ? messages : [last];
  }

  #calls(): readonly CallItem[] {
    return this.#items.filter((item) => item.type === "call");
  }

  #reason(): FinishReason {
    if (this.#shown().some(({ isRefusal }) => isRefusal)) return "content_filter";
    const end = this.#status === "incomplete" ? answerEnd(this.#incompleteReason) : "stop";
    if (end === "length" || end === "content_filter") return end;
    return this.#callCount > 0 ? "tool_calls" : "stop";
  }

  #note(response: WireObject | undefined): void {
    this.#model = wireText(response?.["model"]) || this.#model;
    this.#usage.add(response?.["usage"]);
  }

  #addWhole(response: WireObject, onDelta: Listener): void {
    const { error, output, status } = response;
    if (Array.isArray(output) || typeof status === "string") {
      this.#finish(response, typeof status === "string" ? status : "completed", onDelta);
    } else if (error !== undefined && error !== null) throw answerError(error);
  }

  #finish(response: WireObject, status: string, onDelta: Listener): void {
    this.#note(response);
    const streamed = new Set(this.#items.map(({ type }) => type));
    for (const [index, value] of wireArray(response["output"]).entries()) {
      const item = wireObject(value) ?? {};
      // Some servers number the items of the stream and of the response differently.
      const known = this.#known(item, index);
      if (known !== undefined || !streamed.has(typeOf(wireText(item["type"])))) {
        this.#take(item, index, { isDone: true, known }, onDelta);
      }
    }
    this.#settle("text", onDelta);
    this.#incompleteReason = wireText(wireObject(response["incomplete_details"])?.["reason"]);
    this.#isEnded = true;
    const { error } = response;
    if (status === "failed" || (error !== undefined && error !== null)) {
      throw answerError(error ?? "the response failed");
    }
    this.#status = status;
  }

  #known(item: WireObject, key: unknown): AnswerItem | undefined {
    const id = wireText(item["id"]);
    const type = typeOf(wireText(item["type"]));
    const [byId, byKey] = [this.#byId.get(id), this.#byKey.get(key)];
    if (byId?.type === type) return byId;
    return byKey?.type === type ? byKey : undefined;
  }

  /** Adds an item as the server sends it when it begins and when it is complete. */
  #take(
    value: unknown,
    key: unknown,
    { isDone, known }: { readonly isDone: boolean; readonly known?: AnswerItem | undefined },
    onDelta: Listener,
  ): void {
    const given = wireObject(value);
    if (given === undefined) return;
    const item = known ?? this.#known(given, key) ?? this.#open(wireText(given["type"]), key, given, onDelta);
    this.#name(item, wireText(given["id"]));
    item.isDone ||= isDone;
    switch (item.type) {
      case "message":
        this.#readMessage(item, given, onDelta);
        break;
      case "reasoning":
        for (const [at, part] of wireArray(given["summary"]).entries()) {
          this.#reportThought(item.summary.completeSeparated(at, textIn(part)), onDelta);
        }
        for (const [at, part] of wireArray(given["content"]).entries()) {
          this.#reportThought(item.content.completeSeparated(at, textIn(part)), onDelta);
        }
        // Until the item is complete, its encrypted content may not be.
        if (isDone) item.encrypted = wireText(given["encrypted_content"]) || item.encrypted;
        break;
      case "call": {
        item.callId = wireText(given["call_id"]) || item.callId || item.id;
        item.name = wireText(given["name"]) || item.name;
        const rest = item.arguments.complete(0, argumentsIn(given));
        if (item.isReported) reportArguments(item, rest, onDelta);
        else announce(item, onDelta);
        break;
      }
      case "hosted":
        item.item = given as JsonObject;
        break;
      case "other":
        break;
      default:
        item satisfies never;
    }
  }

  #readMessage(item: MessageItem, given: WireObject, onDelta: Listener): void {
    item.phase = wireText(given["phase"]) || item.phase;
    if (item.phase !== "commentary") this.#show(item, onDelta);
    for (const [at, value] of wireArray(given["content"]).entries()) {
      const part = wireObject(value) ?? {};
      const refusal = wireText(part["refusal"]);
      item.isRefusal ||= refusal !== "";
      this.#reportText(item, item.text.complete(at, refusal === "" ? wireText(part["text"]) : refusal), onDelta);
      for (const annotation of wireArray(part["annotations"])) this.#addSource(annotation);
    }
  }

  /** The item that a piece belongs to; opens one if the server has not. */
  #item<Type extends "message" | "reasoning" | "call">(
    type: Type,
    event: WireObject,
    onDelta: Listener,
  ): Extract<AnswerItem, { type: Type }> {
    const given = { id: event["item_id"], type: wireTypes[type] };
    const key = keyOf(event);
    const item = this.#known(given, key) ?? this.#open(given.type, key, given, onDelta);
    if (item.type === "message" && item.phase === undefined) this.#show(item, onDelta);
    return item as Extract<AnswerItem, { type: Type }>;
  }

  #name(item: AnswerItem, id: string): void {
    if (id === "") return;
    item.id = id;
    this.#byId.set(id, item);
  }

  #open(wireType: string, key: unknown, given: WireObject, onDelta: Listener): AnswerItem {
    if (this.#items.length === MOST_ITEMS) throw tooManyItems();
    const item = this.#created(wireType);
    this.#name(item, wireText(given["id"]));
    this.#items.push(item);
    this.#byKey.set(key, item);
    if (item.type === "call") {
      this.hasBegun = true;
      this.#settle("text", onDelta);
    }
    return item;
  }

  #created(wireType: string): AnswerItem {
    const base = { id: "", isDone: false };
    const type = typeOf(wireType);
    switch (type) {
      case "message":
        return {
          ...base,
          type,
          phase: undefined,
          text: new TextParts(),
          isRefusal: false,
          shownAs: undefined,
          isReported: false,
        };
      case "reasoning":
        return { ...base, type, summary: new TextParts(), content: new TextParts(), encrypted: "" };
      case "call": {
        if (this.#callCount === MOST_CALLS) throw tooManyCalls();
        const index = this.#callCount;
        this.#callCount += 1;
        return { ...base, type, index, callId: "", name: "", arguments: new TextParts(), isReported: false };
      }
      case "hosted": {
        const tool = hostedTypes[wireType] ?? wireType;
        if (!this.#hostedTools.some((given) => given.startsWith(tool))) throw unaskedTool(tool);
        return { ...base, type, item: {} };
      }
      case "other":
        return { ...base, type };
      default:
        return type satisfies never;
    }
  }

  /** Reports a message's text from now on. A commentary before a final answer is not part of its text. */
  #show(item: MessageItem, onDelta: Listener): void {
    if (item.shownAs !== undefined) return;
    this.#settle(item.phase === "final_answer" ? "reasoning" : "text", onDelta);
    item.shownAs = "text";
  }

  /** Reports commentary that has not been reported yet. */
  #settle(shownAs: "text" | "reasoning", onDelta: Listener): void {
    for (const item of this.#items) {
      if (item.type !== "message" || item.shownAs !== undefined || item.phase !== "commentary") continue;
      item.shownAs = shownAs;
      this.#reportText(item, item.text.text, onDelta);
    }
  }

  /** Whether text of the content stands before this message. */
  #isContinued(item: MessageItem): boolean {
    if (item.phase === "final_answer" || item.shownAs !== "text") return false;
    return this.#items.some(
      (one) => one !== item && one.type === "message" && one.shownAs === "text" && one.isReported,
    );
  }

  #reportText(item: MessageItem, text: string, onDelta: Listener): void {
    if (text === "") return;
    this.hasBegun = true;
    if (item.shownAs === undefined) return;
    const separator = !item.isReported && this.#isContinued(item) ? textSeparator : "";
    item.isReported = true;
    onDelta?.({ type: item.shownAs, text: separator + text });
  }

  #reportThought(text: string, onDelta: Listener): void {
    if (text === "") return;
    this.hasBegun = true;
    onDelta?.({ type: "reasoning", text });
  }

  /** Each page and file once, even if several passages cite it. */
  #addSource(annotation: unknown): void {
    const source = sourceIn(annotation);
    if (source !== undefined) this.#sources.set(source.url ?? source.id ?? "", source);
  }
}

const wireTypes = { message: "message", reasoning: "reasoning", call: "function_call" } as const;

/** Most items of one answer. */
const MOST_ITEMS = 10_000;

function tooManyItems(): ModelError {
  return new ModelError(`The model's answer has more than the permitted ${MOST_ITEMS} items.`, {
    retryable: true,
    mayHaveBeenSent: true,
    details: { kind: "malformed" },
  });
}

function unaskedTool(tool: string): ModelError {
  return new ModelError(
    `The server has executed the tool "${tool}" itself, which it was not given. Its cost and its effects cannot be controlled here: name it in tools of extraBody, or turn it off at the server.`,
    { retryable: false, mayHaveBeenSent: true, details: { kind: "configuration" } },
  );
}

function incomplete(message: string): ModelError {
  return new ModelError(message, { retryable: true, mayHaveBeenSent: true, details: { kind: "incomplete" } });
}
