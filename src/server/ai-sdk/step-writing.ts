import {
  type AnswerSource,
  type Json,
  meantCall,
  type Message,
  textOf,
  type TroupeEventOf,
} from "../../state/index.ts";
import type { PartChunk } from "./chunks.ts";

type Delta = TroupeEventOf<"text.delta" | "reasoning.delta" | "call.delta">;

interface WrittenCall {
  readonly name: string;
  text: string;
}

/** The parts of a step that were sent. */
interface Written {
  text: string;
  reasoning: string;
  readonly calls: Map<string, WrittenCall>;
  open: "text" | "reasoning" | null;
  /** Number of text and reasoning parts, for their ids. */
  count: number;
}

/**
 * Writes the answer of one step of the agent, from its pieces, a snapshot, and the stored message.
 *
 * Invariants
 * 1. The sent text of a step is a prefix of its full text. When the text differs (the call was repeated, a hook replaced it), the
 *    step is reset and written anew.
 * 2. Each character is sent once, whether it arrives as a delta, in a snapshot or with the stored answer.
 */
export class StepWriting {
  readonly #step: string;
  #attempt = 0;
  #written: Written = nothingWritten();

  constructor(step: string) {
    this.#step = step;
  }

  piece(event: Delta): PartChunk[] {
    const begun = this.#begin(event.attempt);
    if (event.type === "call.delta") {
      const known = this.#written.calls.get(event.callId)?.text ?? "";
      // After a gap, a snapshot with the missing text follows.
      if (event.offset > known.length) return begun;
      return [...begun, ...this.#call(event, known + event.text.slice(known.length - event.offset))];
    }
    const kind = event.type === "text.delta" ? "text" : "reasoning";
    const known = this.#written[kind];
    if (event.offset > known.length) return begun;
    return [...begun, ...this.#add(kind, event.text.slice(known.length - event.offset))];
  }

  snapshot({ attempt, text, reasoning, calls = [] }: TroupeEventOf<"text.snapshot">): PartChunk[] {
    const { text: sent, reasoning: thought, calls: written } = this.#written;
    const isContinued =
      this.#attempt === attempt &&
      text.startsWith(sent) &&
      (reasoning ?? thought).startsWith(thought) &&
      calls.every((call) => call.text.startsWith(written.get(call.callId)?.text ?? ""));
    const begun = isContinued ? [] : this.restart();
    this.#attempt = attempt;
    return [
      ...begun,
      ...this.#add("reasoning", (reasoning ?? "").slice(this.#written.reasoning.length)),
      ...this.#add("text", text.slice(this.#written.text.length)),
      ...calls.flatMap((call) => this.#call(call, call.text)),
    ];
  }

  /** Removes what an attempt of the call has written. */
  restart(): PartChunk[] {
    const { count, calls } = this.#written;
    this.#written = nothingWritten();
    return count === 0 && calls.size === 0 ? [] : [{ type: "reset-step" }];
  }

  /** Sends the rest of the stored answer: text, sources and calls. */
  responded(stored: Message | undefined): PartChunk[] {
    const text = stored === undefined ? "" : textOf(stored.content);
    const calls = stored?.role === "assistant" ? (stored.toolCalls ?? []).map(meantCall) : [];
    const sources = stored?.role === "assistant" ? (stored.sources ?? []) : [];
    const ids = new Set(calls.map(({ callId }) => callId));
    const isContinued =
      text.startsWith(this.#written.text) && [...this.#written.calls.keys()].every((callId) => ids.has(callId));
    return [
      ...(isContinued ? [] : this.restart()),
      ...this.#add("text", text.slice(this.#written.text.length)),
      ...this.end(),
      ...sources.flatMap((source, index) => sourceChunk(source, `${this.#step}:source:${index}`)),
      ...calls.map(
        ({ callId: toolCallId, name: toolName, arguments: args }) =>
          ({
            type: "tool-input-available",
            toolCallId,
            toolName,
            input: inputOf(args),
            providerExecuted: true,
          }) as const,
      ),
    ];
  }

  /** Ends the open text or reasoning. */
  end(): PartChunk[] {
    const { open } = this.#written;
    this.#written.open = null;
    return open === null ? [] : [{ type: `${open}-end`, id: this.#idOf(open) }];
  }

  #begin(attempt: number): PartChunk[] {
    if (this.#attempt === attempt) return [];
    this.#attempt = attempt;
    return this.restart();
  }

  #add(kind: "text" | "reasoning", delta: string): PartChunk[] {
    if (delta === "") return [];
    const chunks: PartChunk[] = [];
    if (this.#written.open !== kind) {
      chunks.push(...this.end());
      this.#written.count += 1;
      this.#written.open = kind;
      chunks.push({ type: `${kind}-start`, id: this.#idOf(kind) });
    }
    this.#written[kind] += delta;
    return [...chunks, { type: `${kind}-delta`, id: this.#idOf(kind), delta }];
  }

  #call({ callId, name }: { readonly callId: string; readonly name: string }, whole: string): PartChunk[] {
    const known = this.#written.calls.get(callId);
    const sent = known?.text ?? "";
    this.#written.calls.set(callId, { name, text: whole });
    const start: PartChunk[] = known
      ? []
      : [...this.end(), { type: "tool-input-start", toolCallId: callId, toolName: name, providerExecuted: true }];
    if (whole.length <= sent.length) return start;
    return [...start, { type: "tool-input-delta", toolCallId: callId, inputTextDelta: whole.slice(sent.length) }];
  }

  #idOf(kind: "text" | "reasoning"): string {
    return `${this.#step}:${kind}:${this.#written.count}`;
  }
}

function nothingWritten(): Written {
  return { text: "", reasoning: "", calls: new Map(), open: null, count: 0 };
}

/** The arguments as a value; the model's own text if that is not JSON. */
function inputOf(args: string): Json {
  if (args === "") return {};
  try {
    return JSON.parse(args) as Json;
  } catch {
    return args;
  }
}

function sourceChunk(source: AnswerSource, id: string): PartChunk[] {
  const { type, url, title, mediaType, id: sourceId = id } = source;
  if (type === "url") {
    return url === undefined ? [] : [{ type: "source-url", sourceId, url, ...(title === undefined ? {} : { title }) }];
  }
  const shown = { mediaType: mediaType ?? "application/octet-stream", title: title ?? "document" };
  return [{ type: "source-document", sourceId, ...shown }];
}
