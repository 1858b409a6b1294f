import type { TroupeEvent, TroupeEventOf } from "../../state/index.ts";
import { GAP } from "./chat-request.ts";

type Piece = TroupeEventOf<"text.delta" | "reasoning.delta">;

/** One step's text or reasoning, as one attempt of the call wrote it. */
interface Written {
  attempt: number;
  text: string;
}

/**
 * Tracks which text and reasoning of an answer were sent to a client.
 *
 * Invariants
 * 1. Sent text is never retracted, because the protocol has no event for it.
 * 2. At the end, the text of each step was sent whole, with an empty line between steps. A text that does not start
 *    with the sent text of its step (the call was repeated, a hook replaced it) is sent again, whole.
 */
export class TextShown {
  readonly #turnId: string;
  #all = "";
  #step: number | null = null;
  /** Sent text of the current step. */
  #sent = "";
  #text: Written = { attempt: 0, text: "" };
  #reasoning: Written = { attempt: 0, text: "" };
  /** Steps up to this one were read from the store. */
  #known: number;

  /** `stored`: the initial text for the client, of the steps up to `known`. */
  constructor(turnId: string, known = 0, stored = "") {
    this.#turnId = turnId;
    this.#known = known;
    this.#all = stored;
  }

  /** The new text and reasoning of an event. */
  take(event: TroupeEvent): { readonly text: string; readonly reasoning: string } {
    const nothing = { text: "", reasoning: "" };
    if (event.turnId !== this.#turnId || event.step === null || event.step <= this.#known) return nothing;
    if (event.type === "text.delta")
      return { ...nothing, text: this.#sendStep(event.step, this.#grown("text", event)) };
    if (event.type === "reasoning.delta") return { ...nothing, reasoning: this.#thought(event) };
    if (event.type !== "text.snapshot") return nothing;
    this.#begin(event.step);
    this.#text = { attempt: event.attempt, text: event.text };
    const reasoning = event.reasoning === null ? "" : this.#thoughtWhole(event.attempt, event.reasoning);
    return { text: this.#sendStep(event.step, event.text), reasoning };
  }

  /** The missing rest of a step's stored text. */
  responded({ turnId, step }: Pick<TroupeEvent, "turnId" | "step">, text: string): string {
    if (turnId !== this.#turnId || step === null || step <= this.#known) return "";
    this.#begin(step);
    // More text was sent than the stored one contains.
    if (this.#sent !== text && this.#sent.startsWith(text)) this.#sent = "";
    return this.#sendStep(step, text);
  }

  /** Appends text that belongs to no step. */
  note(text: string): string {
    const piece = `${this.#all === "" ? "" : GAP}${text}`;
    this.#all += piece;
    return piece;
  }

  /** The missing rest of the whole answer. */
  end(whole: string): string {
    if (!whole.startsWith(this.#all)) return "";
    const missing = whole.slice(this.#all.length);
    this.#all = whole;
    return missing;
  }

  #begin(step: number): void {
    if (this.#step === step) return;
    this.#step = step;
    this.#sent = "";
    this.#text = { attempt: 0, text: "" };
    this.#reasoning = { attempt: 0, text: "" };
  }

  #sendStep(step: number, whole: string): string {
    this.#begin(step);
    if (whole.trim() === "" || this.#sent.startsWith(whole)) return "";
    const isLonger = this.#sent !== "" && whole.startsWith(this.#sent);
    const piece = isLonger ? whole.slice(this.#sent.length) : `${this.#all === "" ? "" : GAP}${whole}`;
    this.#sent = whole;
    this.#all += piece;
    return piece;
  }

  /** The text of this attempt. After a gap, a snapshot with the missing text follows. */
  #grown(kind: "text" | "reasoning", event: Piece): string {
    this.#begin(event.step ?? 0);
    const written = kind === "text" ? this.#text : this.#reasoning;
    const known = written.attempt === event.attempt ? written.text : "";
    const text = event.offset > known.length ? known : known.slice(0, event.offset) + event.text;
    if (kind === "text") this.#text = { attempt: event.attempt, text };
    else this.#reasoning = { attempt: event.attempt, text };
    return text;
  }

  #thought(event: TroupeEventOf<"reasoning.delta">): string {
    const before = this.#reasoning;
    const text = this.#grown("reasoning", event);
    return before.attempt === event.attempt ? text.slice(before.text.length) : text;
  }

  #thoughtWhole(attempt: number, whole: string): string {
    const { text } = this.#reasoning;
    this.#reasoning = { attempt, text: whole };
    return whole.startsWith(text) ? whole.slice(text.length) : "";
  }
}
