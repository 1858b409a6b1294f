import type { TurnRest } from "../../runtime/index.ts";
import type { TroupeEvent } from "../../state/index.ts";
import type { StartedTurn } from "../core/plain-message.ts";
import { failureOf } from "../core/failures.ts";
import type { Call } from "../core/route.ts";
import type { SseFrame } from "../core/sse.ts";
import { type Address, answerOf, idsOf, type RequestIds, sourceOf } from "./answers.ts";

type Followed = Pick<StartedTurn, "agent" | "turn" | "turnId">;

/**
 * The text of a request as it is written, then its answer. The first frame comes at once and has no text: it tells the
 * three ids, which every frame has. The pieces of the last step, joined, are the output, unless a model that was asked again
 * has said something else.
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

/** Events of the task, and last the request at rest. Ends without it when the reader has left. */
async function* eventsUntilRest(
  { caller }: Call,
  { agent, turn }: Followed,
  signal: AbortSignal,
): AsyncGenerator<News, void, undefined> {
  // A piece that was written before is in the snapshot that comes first, or in the answer.
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

/** The text of the current step, and what of it the client has. Pieces cannot be taken back. */
class ShownText {
  readonly #turnId: string;
  #step = 0;
  #attempt = 0;
  /** Of the attempt, as far as it is known. */
  #text = "";
  #shown = "";

  constructor(turnId: string) {
    this.#turnId = turnId;
  }

  /** The part of an event's text that is new to the client, who has the beginning of a call that is made again. */
  take(event: TroupeEvent): string {
    if (event.turnId !== this.#turnId || (event.type !== "text.delta" && event.type !== "text.snapshot")) return "";
    if (event.step !== this.#step) this.#shown = "";
    if (event.step !== this.#step || event.attempt !== this.#attempt) this.#text = "";
    this.#step = event.step ?? 0;
    this.#attempt = event.attempt;
    if (event.type === "text.snapshot") this.#text = event.text;
    // After a gap a snapshot comes, which has what is missing.
    else if (event.offset <= this.#text.length) this.#text = this.#text.slice(0, event.offset) + event.text;
    if (this.#shown.startsWith(this.#text)) return "";
    const piece = this.#text.startsWith(this.#shown) ? this.#text.slice(this.#shown.length) : this.#text;
    this.#shown = this.#text;
    return piece;
  }

  /** The rest of the answer, which came too late or in one piece. */
  missing(output: string, steps: number): string {
    if (this.#step !== steps) return output;
    return output.startsWith(this.#shown) ? output.slice(this.#shown.length) : "";
  }
}
