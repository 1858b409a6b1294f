import { setTimeout as delay } from "node:timers/promises";
import type { ClientPlace, Counts } from "../serving/killed-nodes.ts";
import { tokenOf } from "../serving/team.ts";

const AGAIN_MS = 50;

/**
 * The connections of one window of a client. Each request goes to the next node; its own address is ignored, because the
 * official clients assume one server.
 */
export class Line {
  readonly place: ClientPlace;
  readonly counts: Counts;
  /** Whether a cut stream ends normally, for a client that leaves a rejection unhandled when a body breaks off. */
  endsWhenCut = false;
  #isBroken = false;

  constructor(place: ClientPlace, counts: Counts) {
    this.place = place;
    this.counts = counts;
  }

  readonly fetch = async (input: string | URL | Request, init?: RequestInit): Promise<Response> => {
    const request = new Request(input, init);
    const { pathname, search } = new URL(request.url);
    const headers = new Headers(request.headers);
    headers.set("authorization", `Bearer ${tokenOf(this.place.number)}`);
    const { method, signal } = request;
    const body = method === "GET" ? null : await request.text();
    try {
      const response = await fetch(`${this.place.nextNode()}${pathname}${search}`, { method, headers, body, signal });
      this.#isBroken = response.status === 503;
      return this.#watched(response, signal);
    } catch (error) {
      this.#isBroken = !signal.aborted;
      throw error;
    }
  };

  /**
   * Makes an attempt, and repeats it while connections break or nodes return retryable errors. Rejects with any other
   * error. `onCut` is called before each repetition.
   */
  async insist<Found>(attempt: () => Promise<Found>, onCut: () => void = () => undefined): Promise<Found> {
    for (;;) {
      this.#isBroken = false;
      try {
        return await attempt();
      } catch (error) {
        if (!this.#isBroken) throw error;
      }
      onCut();
      this.counts.again += 1;
      await delay(AGAIN_MS);
    }
  }

  /** Records when the body breaks off, unless the client itself has left. */
  #watched(response: Response, signal: AbortSignal): Response {
    const { body, status, statusText, headers } = response;
    if (body === null) return response;
    const isStream = headers.get("content-type")?.startsWith("text/event-stream") === true;
    if (isStream) this.counts.streams += 1;
    const reader = body.getReader();
    let isLeft = false;
    const watched = new ReadableStream<Uint8Array>({
      pull: async (controller) => {
        try {
          const { done, value } = await reader.read();
          if (isLeft) return;
          if (done) controller.close();
          else controller.enqueue(value);
        } catch (error) {
          if (isLeft) return;
          if (signal.aborted) {
            controller.error(error);
            return;
          }
          this.#isBroken = true;
          if (isStream) this.counts.cut += 1;
          if (this.endsWhenCut) controller.close();
          else controller.error(error);
        }
      },
      cancel: (reason) => {
        isLeft = true;
        return reader.cancel(reason);
      },
    });
    return new Response(watched, { status, statusText, headers });
  }
}
