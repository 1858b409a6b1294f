import type { TroupeEvent } from "../../state/index.ts";
import { shortAgentId } from "../view/format.ts";
import { eventText } from "../view/plain-line.ts";
import { answerLines, reasonOf, type TurnEnd } from "../view/reporter.ts";
import { type Paint, printable } from "../view/terminal-text.ts";

interface ChatViewOptions {
  readonly write: (text: string) => void;
  readonly paint: Paint;
  readonly rootAgentId: string;
  /** Current maximum width of a line. */
  readonly columns: () => number;
}

/** Events that the chat shows in another form: as a question, an answer, or a prompt. */
const untold: readonly TroupeEvent["type"][] = ["request.opened", "model.responded", "lifecycle.changed"];

/**
 * Writes a conversation to a terminal or a pipe: the agent's text as it streams, and a line for each notable event of
 * the tree.
 * Owns: whether a line is open, and how much of the answer was written. Does not own: the stream, the typed input.
 */
export class ChatView {
  readonly #options: ChatViewOptions;
  /** Text of this step that was written. */
  #streamed = "";
  #isLineBegun = false;
  #heldBack: TroupeEvent[] | undefined;

  constructor(options: ChatViewOptions) {
    this.#options = options;
  }

  event(event: TroupeEvent): void {
    if (this.#heldBack !== undefined) this.#heldBack.push(event);
    else if (event.agentId === this.#options.rootAgentId) this.#ofRoot(event);
    else this.#note(event, `${event.agentName} ${shortAgentId(event.agentId)}: `);
  }

  /** Writes one line. */
  say(line: string): void {
    this.#endLine();
    this.#options.write(`${line}\n`);
  }

  /** Delays events while a person is asked a question; the returned function releases them. */
  hold(): () => void {
    this.#endLine();
    this.#heldBack ??= [];
    return () => {
      const held = this.#heldBack ?? [];
      this.#heldBack = undefined;
      for (const event of held) this.event(event);
    };
  }

  #ofRoot(event: TroupeEvent): void {
    switch (event.type) {
      case "text.delta":
        this.#stream(event.text);
        return;
      case "text.snapshot":
        this.#replace(event.text);
        return;
      case "step.started":
      case "step.restarted":
        this.#endLine();
        this.#streamed = "";
        if (event.type === "step.restarted") this.#note(event, "");
        return;
      case "turn.started":
        return;
      case "turn.completed":
      case "turn.stopped":
      case "turn.failed":
        this.#end(event);
        return;
      default:
        this.#note(event, "");
    }
  }

  #stream(delta: string): void {
    const text = printable(delta);
    this.#streamed += text;
    // Skips empty lines at the start of an answer.
    const shown = this.#streamed === text ? text.trimStart() : text;
    if (shown === "") return;
    this.#options.write(shown);
    this.#isLineBegun = !shown.endsWith("\n");
  }

  /** Writes the missing rest of the answer so far, or the whole answer again if the written text differs. */
  #replace(whole: string): void {
    const text = printable(whole);
    if (!text.startsWith(this.#streamed)) {
      this.#endLine();
      this.#streamed = "";
    }
    this.#stream(text.slice(this.#streamed.length));
  }

  /** Writes the answer of a model that does not stream. */
  #end(end: TurnEnd): void {
    const isSaid = this.#streamed.trim() !== "" && this.#streamed.trim() === printable(end.text).trim();
    const why = reasonOf(end);
    this.#endLine();
    if (!isSaid) answerLines(end, this.#options.columns()).forEach((line) => this.say(line));
    else if (why !== undefined) this.say(why);
    this.#streamed = "";
  }

  #note(event: TroupeEvent, who: string): void {
    const isUntold = untold.includes(event.type) || (event.type === "turn.waiting" && event.reason === "request");
    const text = isUntold ? undefined : eventText(event);
    if (text !== undefined) this.say(this.#options.paint("dim", `  · ${who}${text}`));
  }

  #endLine(): void {
    if (this.#isLineBegun) this.#options.write("\n");
    this.#isLineBegun = false;
  }
}
