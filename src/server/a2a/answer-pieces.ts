import type { TroupeEvent } from "../../state/index.ts";
import { ANSWER, answerOf, answerParts, type TaskTurn } from "./task.ts";
import type { TurnNow } from "./task-status.ts";
import type { StreamItem, WirePart } from "./wire.ts";
import { outputOf } from "../core/turn-events.ts";

/**
 * Turns the answer's text into updates of its artifact. An update replaces the text of an earlier step, of a failed
 * attempt or before a gap (`append: false`).
 */
export class AnswerPieces {
  readonly #task: Pick<TaskTurn, "turnId" | "ids">;
  #place = "";
  #text = "";

  constructor(task: Pick<TaskTurn, "turnId" | "ids">) {
    this.#task = task;
  }

  take(event: TroupeEvent): StreamItem | undefined {
    if (event.turnId !== this.#task.turnId) return undefined;
    if (event.type !== "text.delta" && event.type !== "text.snapshot") return undefined;
    const place = `${event.step}:${event.attempt}`;
    if (event.type === "text.snapshot") return this.#shown(place, event.text);
    const known = this.#place === place ? this.#text : "";
    // After a gap, a snapshot with the missing text follows.
    if (event.offset > known.length) return undefined;
    return this.#shown(place, known.slice(0, event.offset) + event.text);
  }

  /** The last update, once the turn has ended with an answer. */
  end(now: TurnNow): StreamItem | undefined {
    const [whole] = answerOf(now);
    if (whole === undefined || !("stopReason" in now)) return undefined;
    if (this.#text === "" || !now.text.startsWith(this.#text)) {
      return this.#piece(whole.parts, { append: false, lastChunk: true });
    }
    return this.#piece(answerParts(now.text.slice(this.#text.length), outputOf(now)), {
      append: true,
      lastChunk: true,
    });
  }

  #shown(place: string, text: string): StreamItem | undefined {
    const isContinued = this.#place === place && this.#text !== "" && text.startsWith(this.#text);
    const piece = isContinued ? text.slice(this.#text.length) : text;
    this.#place = place;
    this.#text = text;
    if (piece === "") return undefined;
    return this.#piece([{ text: piece }], { append: isContinued, lastChunk: false });
  }

  #piece(parts: readonly WirePart[], how: { readonly append: boolean; readonly lastChunk: boolean }): StreamItem {
    const artifact = { artifactId: ANSWER, name: "answer", parts };
    return { artifactUpdate: { ...this.#task.ids, artifact, ...how } };
  }
}
