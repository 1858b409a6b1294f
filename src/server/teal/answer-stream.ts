import type { TurnRest } from "../../runtime/index.ts";
import type { TroupeEvent } from "../../state/index.ts";
import type { StartedTurn } from "../core/plain-message.ts";
import { failureOf } from "../core/failures.ts";
import type { Call } from "../core/route.ts";
import type { SseFrame } from "../core/sse.ts";
import { type Address, answerOf, idsOf, type RequestIds, sourceOf } from "./answers.ts";

type Followed = Pick<StartedTurn, "agent" | "turn" | "turnId">;

/**
 * Streams the text of a request, then its answer. The first frame is sent at once, without text, with the three ids
 * that every frame contains. The deltas of the last step, joined, equal the output, unless a repeated call of the model
 * returned a different text.
 */
export async function* answerFrames(
  call: Call,
  followed: Followed,
  { address, signal }: { readonly address: Address; readonly signal: AbortSignal },
): AsyncGenerator<SseFrame, void, undefined> {
  const { agent, turnId } = followed;
  const three = idsOf(agent, turnId);
  const partial = (text: string): SseFrame =>
    frameOf("partial-response", { ...three, output_partial: text, source: sourceOf(address) });
  const shown = new ShownText(turnId);
  const left = new AbortController();
  const leaving = AbortSignal.any([signal, left.signal]);
  try {
    yield partial("");
    let rest: TurnRest | undefined;
    for await (const news of eventsUntilRest(call, followed, leaving)) {
      if ("rest" in news) rest = news.rest;
      const piece = "event" in news ? shown.take(news.event) : "";
      if (piece !== "") yield partial(piece);
    }
    if (rest === undefined) return;
    const missing = rest.status === "completed" ? shown.missing(rest.text, rest.steps) : "";
    if (missing !== "") yield partial(missing);
    yield await lastFrame({ agent, turnId, address }, rest, three);
  } catch (error) {
    if (!leaving.aborted) yield frameOf("error", { error: failureOf(error).message, ...three });
  } finally {
    left.abort();
  }
}

type News = { readonly event: TroupeEvent } | { readonly rest: TurnRest };

/** Yields events of the task, and last the request at rest; without it if the reader has left. */
async function* eventsUntilRest(
  { caller }: Call,
  { agent, turn }: Followed,
  signal: AbortSignal,
): AsyncGenerator<News, void, undefined> {
  // Earlier deltas are in the first snapshot or in the answer.
  const events = caller.events(agent.agentId, { after: "now", signal });
  const gone = new Promise<undefined>((resolve) => {
    if (signal.aborted) resolve(undefined);
    signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
  const settled = turn.settled.then((rest): News => ({ rest }));
  const nextEvent = async (): Promise<News> => {
    const { done, value } = await events.next();
    return done === true ? await settled : { event: value };
  };
  for (;;) {
    const news = await Promise.race([nextEvent(), settled, gone]);
    if (news === undefined) return;
    yield news;
    if ("rest" in news) return;
  }
}

async function lastFrame(place: Parameters<typeof answerOf>[0], rest: TurnRest, three: RequestIds): Promise<SseFrame> {
  const answer = await answerOf(place, rest);
  if (answer.status === "Failed") return frameOf("error", { error: answer.detail, ...three });
  if (answer.status === "Paused") return frameOf("hitl-response", answer.content);
  // Clients of older versions read `output_raw`.
  const { content } = answer;
  return frameOf("final-response", "output" in content ? { ...content, output_raw: content.output } : content);
}

function frameOf(event: string, data: object): SseFrame {
  return { event, data: JSON.stringify(data) };
}

/** Tracks the text of the current step and what was sent of it. Sent text cannot be retracted. */
class ShownText {
  readonly #turnId: string;
  #step = 0;
  #attempt = 0;
  /** Text of the current attempt, as far as received. */
  #text = "";
  #shown = "";

  constructor(turnId: string) {
    this.#turnId = turnId;
  }

  /** The new text of an event; after a repeated call, the client keeps the text already sent. */
  take(event: TroupeEvent): string {
    if (event.turnId !== this.#turnId || (event.type !== "text.delta" && event.type !== "text.snapshot")) return "";
    if (event.step !== this.#step) this.#shown = "";
    if (event.step !== this.#step || event.attempt !== this.#attempt) this.#text = "";
    this.#step = event.step ?? 0;
    this.#attempt = event.attempt;
    if (event.type === "text.snapshot") this.#text = event.text;
    // After a gap, a snapshot with the missing text follows.
    else if (event.offset <= this.#text.length) this.#text = this.#text.slice(0, event.offset) + event.text;
    if (this.#shown.startsWith(this.#text)) return "";
    const piece = this.#text.startsWith(this.#shown) ? this.#text.slice(this.#shown.length) : this.#text;
    this.#shown = this.#text;
    return piece;
  }

  /** The rest of the answer that was not sent as deltas. */
  missing(output: string, steps: number): string {
    if (this.#step !== steps) return output;
    return output.startsWith(this.#shown) ? output.slice(this.#shown.length) : "";
  }
}
