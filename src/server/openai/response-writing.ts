import type { TroupeEventOf } from "../../state/index.ts";
import { itemId } from "./response-ids.ts";
import type {
  ItemStatus,
  MessageItem,
  OutputItem,
  OutputText,
  ReasoningItem,
  ReasoningText,
  ResponseEvent,
} from "./response-object.ts";

/** Owns the items of a response, and numbers its events. */
export class ResponseOutput {
  readonly #items: OutputItem[] = [];
  #events: ResponseEvent[] = [];
  #next = 0;

  get items(): readonly OutputItem[] {
    return this.#items;
  }

  /** The sequence number of the next event. */
  get next(): number {
    return this.#next;
  }

  /** Returns the events since the last call. */
  taken(): readonly ResponseEvent[] {
    return this.#events.splice(0);
  }

  /** Raises the sequence number of the next event; never lowers it. */
  reach(number: number): void {
    this.#next = Math.max(this.#next, number);
  }

  emit(event: { readonly type: string } & Readonly<Record<string, unknown>>): void {
    this.#events.push({ ...event, sequence_number: this.#next });
    this.#next += 1;
  }

  /** Starts an item and returns its index. */
  begin(item: OutputItem): number {
    const index = this.#items.push(item) - 1;
    this.emit({ type: "response.output_item.added", output_index: index, item });
    return index;
  }

  /** Changes an open item. */
  replace(index: number, item: OutputItem): void {
    this.#items[index] = item;
  }

  /** Ends an item with its final value. */
  end(index: number, item: OutputItem): void {
    this.replace(index, item);
    this.emit({ type: "response.output_item.done", output_index: index, item });
  }
}

type Kind = "text" | "reasoning";
type Ended = "completed" | "incomplete";

/** Writes the output of one step: its reasoning and its text, each as an item. */
export class StepWriting {
  readonly #output: ResponseOutput;
  readonly #step: string;
  #reasoning: Writing | undefined;
  #text: Writing | undefined;

  /** `step`: the id of the stored message. */
  constructor(output: ResponseOutput, step: string) {
    this.#output = output;
    this.#step = step;
  }

  get step(): string {
    return this.#step;
  }

  piece({ type, attempt, offset, text }: TroupeEventOf<"text.delta" | "reasoning.delta">): void {
    if (text !== "") this.#of(type === "text.delta" ? "text" : "reasoning")?.piece({ attempt, offset, text });
  }

  snapshot({ attempt, text, reasoning }: TroupeEventOf<"text.snapshot">): void {
    // Without the reasoning the order of the items is unknown; the stored answer follows.
    if (reasoning === null && this.#text === undefined) return;
    if (reasoning !== null && reasoning !== "") this.#of("reasoning")?.piece({ attempt, offset: 0, text: reasoning });
    if (text !== "") this.#of("text")?.piece({ attempt, offset: 0, text });
  }

  /** Sends the rest of the stored answer. */
  responded(text: string, reasoning: string): void {
    if (reasoning !== "") this.#of("reasoning");
    this.#endReasoning(reasoning === "" ? undefined : reasoning);
    if (text !== "") this.#of("text");
    this.#text?.end(text, "completed");
    this.#text = undefined;
  }

  /** Ends the open items with the text received so far. */
  end(): void {
    this.#endReasoning(undefined);
    this.#text?.end(this.#text.written, "incomplete");
    this.#text = undefined;
  }

  /** The open item of a kind; `undefined` for reasoning after the text has started, which is not sent. */
  #of(kind: Kind): Writing | undefined {
    if (kind === "text") {
      if (this.#text === undefined) this.#endReasoning(undefined);
      return (this.#text ??= new Writing(this.#output, kind, this.#step));
    }
    if (this.#text !== undefined || this.#hasReasoned) return undefined;
    return (this.#reasoning ??= new Writing(this.#output, kind, this.#step));
  }

  #hasReasoned = false;

  #endReasoning(text: string | undefined): void {
    const reasoning = this.#reasoning;
    if (reasoning === undefined) return;
    this.#reasoning = undefined;
    this.#hasReasoned = true;
    reasoning.end(text ?? reasoning.written, "completed");
  }
}

/**
 * Tracks which text or reasoning of one step was sent.
 *
 * Invariants
 * 1. The sent text is a prefix of the full text, unless the call was repeated or a hook replaced its answer. Then no
 *    more deltas are sent, and the end of the item contains the full text.
 * 2. A delta's number is the index of its last character. So numbers do not depend on how the text was split, and a
 *    client that resumes after any number gets exactly the rest.
 */
class Writing {
  readonly #output: ResponseOutput;
  readonly #kind: Kind;
  readonly #place: { readonly item_id: string; readonly output_index: number; readonly content_index: 0 };
  /** Sequence number of the first character. */
  readonly #from: number;
  #shown = "";
  /** The attempt whose text was sent. */
  #shownIn = 0;
  /** Text of the current attempt. */
  #written = "";
  #attempt = 0;

  constructor(output: ResponseOutput, kind: Kind, step: string) {
    this.#output = output;
    this.#kind = kind;
    const id = kind === "text" ? itemId.message(step) : itemId.reasoning(step);
    this.#place = { item_id: id, output_index: output.begin(itemOf(kind, id, "in_progress")), content_index: 0 };
    output.emit({ type: "response.content_part.added", ...this.#place, part: partOf(kind, "") });
    this.#from = output.next;
  }

  get written(): string {
    return this.#written;
  }

  /** Takes a delta of one attempt, at its offset. */
  piece({ attempt, offset, text }: { readonly attempt: number; readonly offset: number; readonly text: string }): void {
    if (this.#attempt !== attempt) this.#written = "";
    this.#attempt = attempt;
    // After a gap, a snapshot with the missing text follows.
    if (offset > this.#written.length) return;
    this.#written += text.slice(this.#written.length - offset);
    if (this.#shown === "") this.#shownIn = attempt;
    if (this.#shownIn === attempt) this.#show(this.#written);
  }

  end(text: string, status: Ended): void {
    if (text.startsWith(this.#shown)) this.#show(text);
    this.#output.reach(this.#from + text.length);
    const { item_id: id, output_index: index } = this.#place;
    this.#output.emit({ type: `response.${typeOf(this.#kind)}.done`, ...this.#place, text, ...more(this.#kind) });
    this.#output.emit({ type: "response.content_part.done", ...this.#place, part: partOf(this.#kind, text) });
    this.#output.end(index, itemOf(this.#kind, id, status, text));
  }

  #show(text: string): void {
    const delta = text.slice(this.#shown.length);
    if (delta === "") return;
    this.#shown = text;
    this.#output.reach(this.#from + text.length - 1);
    this.#output.emit({ type: `response.${typeOf(this.#kind)}.delta`, ...this.#place, delta, ...more(this.#kind) });
  }
}

function typeOf(kind: Kind): "output_text" | "reasoning_text" {
  return kind === "text" ? "output_text" : "reasoning_text";
}

function more(kind: Kind) {
  return kind === "text" ? { logprobs: [] } : {};
}

function partOf(kind: Kind, text: string): OutputText | ReasoningText {
  return kind === "text" ? outputText(text) : { type: "reasoning_text", text };
}

function outputText(text: string): OutputText {
  return { type: "output_text", text, annotations: [], logprobs: [] };
}

/** Without `text`: a started item. */
function itemOf(kind: Kind, id: string, status: ItemStatus, text?: string): MessageItem | ReasoningItem {
  if (kind === "reasoning") {
    return {
      type: "reasoning",
      id,
      status,
      summary: [],
      content: text === undefined ? [] : [{ type: "reasoning_text", text }],
    };
  }
  return { type: "message", id, status, role: "assistant", content: text === undefined ? [] : [outputText(text)] };
}
