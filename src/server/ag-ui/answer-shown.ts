import type { TroupeEventOf } from "../../state/index.ts";
import type { AgUiEventBody } from "./events.ts";

type Kind = "text" | "reasoning";
type Delta = TroupeEventOf<"text.delta" | "reasoning.delta">;

/** A message in progress: its id, and the text that was sent. */
interface Writing {
  readonly id: string;
  readonly attempt: number;
  text: string;
  isOpen: boolean;
}

/**
 * Tracks which text and reasoning of an agent's current step were sent.
 *
 * Invariants
 * 1. The sent text of a message is a prefix of its full text. A text that differs (the call was repeated, a hook
 *    replaced it) is another message with another id.
 * 2. Each character of a message is sent once, whether it arrives as a delta, in a snapshot or with the stored answer.
 */
export class AnswerShown {
  readonly #step: string;
  #text: Writing | undefined;
  #reasoning: Writing | undefined;
  #texts = 0;
  #reasonings = 0;

  /** `step`: the id of the stored message. */
  constructor(step: string) {
    this.#step = step;
  }

  get step(): string {
    return this.#step;
  }

  /** The message that contains the tool calls. */
  get messageId(): string {
    return this.#text?.id ?? this.#step;
  }

  piece(event: Delta): AgUiEventBody[] {
    const kind = event.type === "text.delta" ? "text" : "reasoning";
    const ends = this.#endOthers(event.attempt);
    const current = this.#of(kind, event.attempt);
    // After a gap, a snapshot with the missing text follows.
    const added = event.offset > current.text.length ? "" : event.text.slice(current.text.length - event.offset);
    return [...ends, ...this.#add(kind, current, added)];
  }

  snapshot({ attempt, text, reasoning }: TroupeEventOf<"text.snapshot">): AgUiEventBody[] {
    const ends = this.#endOthers(attempt);
    const thought = reasoning === null ? [] : this.#whole("reasoning", attempt, reasoning);
    return [...ends, ...thought, ...this.#whole("text", attempt, text)];
  }

  /** Sends the rest of the stored answer. */
  responded(text: string): AgUiEventBody[] {
    const attempt = this.#text?.attempt ?? 0;
    return [...this.#whole("text", attempt, text), ...this.end()];
  }

  /** Ends the open messages. */
  end(): AgUiEventBody[] {
    return [...this.#endReasoning(), ...this.#endText()];
  }

  #whole(kind: Kind, attempt: number, whole: string): AgUiEventBody[] {
    const current = this.#of(kind, attempt);
    if (whole.startsWith(current.text)) return this.#add(kind, current, whole.slice(current.text.length));
    if (whole === "") return [];
    const ends = kind === "text" ? this.#endText() : this.#endReasoning();
    return [...ends, ...this.#add(kind, this.#begin(kind, attempt), whole)];
  }

  #add(kind: Kind, writing: Writing, delta: string): AgUiEventBody[] {
    if (delta === "") return [];
    return kind === "text" ? [...this.#endReasoning(), ...write(writing, delta)] : reason(writing, delta);
  }

  #of(kind: Kind, attempt: number): Writing {
    const current = kind === "text" ? this.#text : this.#reasoning;
    return current?.attempt === attempt ? current : this.#begin(kind, attempt);
  }

  #begin(kind: Kind, attempt: number): Writing {
    const count = kind === "text" ? (this.#texts += 1) : (this.#reasonings += 1);
    const id = `${this.#step}${kind === "text" ? "" : ":reasoning"}${count === 1 ? "" : `~${count}`}`;
    const writing = { id, attempt, text: "", isOpen: false };
    if (kind === "text") this.#text = writing;
    else this.#reasoning = writing;
    return writing;
  }

  /** Ends the messages of other attempts of the call. */
  #endOthers(attempt: number): AgUiEventBody[] {
    const reasoning = this.#reasoning?.attempt === attempt ? [] : this.#endReasoning();
    return [...reasoning, ...(this.#text?.attempt === attempt ? [] : this.#endText())];
  }

  #endText(): AgUiEventBody[] {
    if (this.#text?.isOpen !== true) return [];
    this.#text.isOpen = false;
    return [{ type: "TEXT_MESSAGE_END", messageId: this.#text.id }];
  }

  #endReasoning(): AgUiEventBody[] {
    if (this.#reasoning?.isOpen !== true) return [];
    this.#reasoning.isOpen = false;
    const { id: messageId } = this.#reasoning;
    return [
      { type: "REASONING_MESSAGE_END", messageId },
      { type: "REASONING_END", messageId },
    ];
  }
}

function write(writing: Writing, delta: string): AgUiEventBody[] {
  const { id: messageId } = writing;
  const start = writing.isOpen ? [] : [{ type: "TEXT_MESSAGE_START", messageId, role: "assistant" } as const];
  writing.isOpen = true;
  writing.text += delta;
  return [...start, { type: "TEXT_MESSAGE_CONTENT", messageId, delta }];
}

function reason(writing: Writing, delta: string): AgUiEventBody[] {
  const { id: messageId } = writing;
  const start = writing.isOpen
    ? []
    : [
        { type: "REASONING_START", messageId } as const,
        { type: "REASONING_MESSAGE_START", messageId, role: "reasoning" } as const,
      ];
  writing.isOpen = true;
  writing.text += delta;
  return [...start, { type: "REASONING_MESSAGE_CONTENT", messageId, delta }];
}
