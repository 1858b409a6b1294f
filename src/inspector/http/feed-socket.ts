import type { WebSocket } from "ws";
import { NotFoundError, TroupeError } from "../../errors/index.ts";
import type { Feed } from "../feed/feed.ts";
import type { FeedSink, RunWatch } from "../feed/run-watch.ts";
import { type ClientMessage, clientMessageSchema, type FeedMessage } from "../feed/wire.ts";

/** Bytes buffered in a socket above which the feed reads nothing more for the client. */
const MOST_WAITING = 256_000;
/** At this number of unhandled messages of a client, the socket is paused until half of them are handled. */
const MOST_UNTAKEN = 32;
/** Most runs that one client can watch at a time. */
const MOST_RUNS = 4;
/** Interval of pings, in milliseconds. A client that has not answered a ping by the next one is disconnected. */
const PING_MS = 30_000;

/**
 * One client of the feed.
 * Owns: its socket and its watches. Does not own: the feed.
 *
 * Invariants
 * 1. At most `MOST_WAITING` bytes and one batch are buffered for a client, independent of its messages.
 * 2. A message that does not match the schema is answered with an error and has no other effect.
 * 3. A client that keeps sending messages without reading the answers is disconnected.
 */
export class FeedSocket {
  readonly #feed: Feed;
  readonly #socket: WebSocket;
  readonly #watches = new Map<string, RunWatch>();
  readonly #ping: ReturnType<typeof setInterval>;
  #isAlive = true;
  /** Messages are handled in order, even if one waits for the stores. */
  #last: Promise<void> = Promise.resolve();
  #untaken = 0;

  constructor(feed: Feed, socket: WebSocket) {
    this.#feed = feed;
    this.#socket = socket;
    this.#ping = setInterval(() => this.#beat(), PING_MS);
    this.#ping.unref();
    socket.on("pong", () => {
      this.#isAlive = true;
    });
    socket.on("error", () => socket.terminate());
    socket.on("close", () => this.#end());
    socket.on("message", (data: Buffer, isBinary) => {
      const message = isBinary ? undefined : messageIn(data.toString("utf8"));
      if (!message)
        return this.#complain({
          code: "invalid",
          message: "invalid message; expected JSON of the type watch, credit or end",
        });
      this.#untaken += 1;
      if (this.#untaken >= MOST_UNTAKEN) socket.pause();
      this.#last = this.#last
        .then(() => this.#take(message))
        .finally(() => {
          this.#untaken -= 1;
          if (socket.isPaused && this.#untaken < MOST_UNTAKEN / 2) socket.resume();
        });
    });
  }

  async #take(message: ClientMessage): Promise<void> {
    if (message.type === "credit") for (const watch of this.#watches.values()) watch.grant(message.batches);
    else if (message.type === "end") this.#leave(message.run);
    else await this.#watch(message);
  }

  async #watch({ run, after, credit }: Extract<ClientMessage, { type: "watch" }>): Promise<void> {
    this.#leave(run);
    if (this.#watches.size >= MOST_RUNS) {
      return this.#complain({ code: "too_many", message: `a client watches at most ${MOST_RUNS} runs`, run });
    }
    try {
      const watch = await this.#feed.watch(run, { after, credit }, this.#sinkOf(run));
      if (this.#socket.readyState === this.#socket.OPEN) this.#watches.set(run, watch);
      else watch.end();
    } catch (error) {
      const code = error instanceof NotFoundError ? "not_found" : "unavailable";
      const message = error instanceof TroupeError ? error.message : "the stores do not answer";
      this.#complain({ code, message, run });
    }
  }

  #complain(error: Omit<Extract<FeedMessage, { type: "error" }>, "type">): void {
    if (this.#socket.bufferedAmount > MOST_WAITING) this.#socket.terminate();
    else this.#send({ type: "error", ...error });
  }

  #leave(run: string): void {
    this.#watches.get(run)?.end();
    this.#watches.delete(run);
  }

  #sinkOf(run: string): FeedSink {
    const socket = this.#socket;
    let wasFull = false;
    const isFull = (): boolean => socket.bufferedAmount > MOST_WAITING || socket.readyState !== socket.OPEN;
    return {
      isFull() {
        wasFull = isFull();
        return wasFull;
      },
      send: (message) =>
        this.#send(message, () => {
          if (!wasFull || isFull()) return;
          wasFull = false;
          this.#watches.get(run)?.pump();
        }),
    };
  }

  #send(message: FeedMessage, sent?: () => void): void {
    if (this.#socket.readyState !== this.#socket.OPEN) return;
    this.#socket.send(JSON.stringify(message), (error) => {
      if (!error) sent?.();
    });
  }

  #beat(): void {
    if (!this.#isAlive) return this.#socket.terminate();
    this.#isAlive = false;
    this.#socket.ping();
  }

  #end(): void {
    clearInterval(this.#ping);
    for (const watch of this.#watches.values()) watch.end();
    this.#watches.clear();
  }
}

function messageIn(text: string): ClientMessage | undefined {
  try {
    return clientMessageSchema.safeParse(JSON.parse(text)).data;
  } catch {
    return undefined;
  }
}
