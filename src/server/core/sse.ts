import type { Clock } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import { parseCursor, type TroupeEvent } from "../../state/index.ts";

/** One server-sent event. */
export interface SseFrame {
  /** `Last-Event-ID` of the client's next request. Must not contain line breaks. */
  readonly id?: string | undefined;
  /** Event type. Must not contain line breaks. */
  readonly event?: string | undefined;
  /** Usually JSON. */
  readonly data: string;
}

/** Frame of a tree's event. Only durable events have an id, so that `Last-Event-ID` is a cursor for `follow`. */
export function eventFrame(event: TroupeEvent): SseFrame {
  return { id: event.cursor ?? undefined, event: event.type, data: JSON.stringify(event) };
}

/** The cursor in `Last-Event-ID`. Throws `InvalidInputError` for other values. */
export function resumePoint(request: Request): string | undefined {
  const id = request.headers.get("last-event-id") ?? "";
  if (id === "") return undefined;
  if (parseCursor(id)) return id;
  throw new InvalidInputError("Last-Event-ID is not a cursor: send the id of the last event that you received");
}

export interface SseOptions {
  readonly clock: Clock;
  /** Milliseconds without frames before a keep-alive comment is sent for proxies. */
  readonly keepAliveMs: number;
  /** Milliseconds after which a client that reads nothing is dropped. */
  readonly stallMs: number;
  /** Milliseconds to wait for the first frame before the headers are sent without it. */
  readonly firstFrameMs: number;
  readonly headers?: Readonly<Record<string, string>> | undefined;
  /** Aborts when the server closes, which ends the stream. */
  readonly closing: AbortSignal;
  /** Closes the connection abruptly, if the server can. */
  readonly cut: (() => void) | undefined;
  /** Called once, when the stream has ended for any reason. */
  readonly onEnd: () => void;
  /** Called with an error after the headers were sent. */
  readonly onError: (error: unknown) => void;
}

const KEEP_ALIVE = ": keep-alive\n\n";

/**
 * Answers with server-sent events. The stream is pulled: the next frame is requested once the client has read the last
 * one. A client that does not read therefore buffers one frame, and is dropped after `stallMs`. An error before the
 * first frame rejects; a later one cuts the connection, and the client continues after its last id.
 * @param open Gets a signal that aborts when the client has left.
 */
export async function sseResponse(
  open: (signal: AbortSignal) => AsyncIterable<SseFrame>,
  options: SseOptions,
): Promise<Response> {
  const stream = new PulledFrames(open, options);
  try {
    await stream.first();
  } catch (error) {
    stream.end();
    throw error;
  }
  const headers = {
    ...options.headers,
    "content-type": "text/event-stream; charset=utf-8",
    "cache-control": "no-cache, no-transform",
    "x-accel-buffering": "no",
  };
  return new Response(stream.readable(), { headers });
}

type Taken = IteratorResult<SseFrame, unknown> | "late" | "closing";

/** The frames of one client. Owns: the iterator, the keep-alive and the stall timer. */
class PulledFrames {
  readonly #options: SseOptions;
  readonly #left = new AbortController();
  readonly #iterator: AsyncIterator<SseFrame>;
  readonly #encoder = new TextEncoder();
  /** The requested frame; kept while a keep-alive is sent. */
  #next: Promise<IteratorResult<SseFrame, unknown>> | undefined;
  #cancelStall: (() => void) | undefined;
  #hasEnded = false;

  constructor(open: (signal: AbortSignal) => AsyncIterable<SseFrame>, options: SseOptions) {
    this.#options = options;
    this.#iterator = open(this.#left.signal)[Symbol.asyncIterator]();
  }

  /** Resolves with the first frame or after its timeout. */
  async first(): Promise<void> {
    await this.#take(this.#options.firstFrameMs);
  }

  readable(): ReadableStream<Uint8Array> {
    return new ReadableStream<Uint8Array>(
      {
        pull: (controller) => this.#pull(controller),
        cancel: () => this.end(),
      },
      { highWaterMark: 1 },
    );
  }

  end(): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#cancelStall?.();
    this.#left.abort();
    // The signal ends a pending read, whose outcome is ignored.
    this.#next?.catch(() => undefined);
    void Promise.resolve(this.#iterator.return?.()).catch(() => undefined);
    this.#options.onEnd();
  }

  async #pull(controller: ReadableStreamDefaultController<Uint8Array>): Promise<void> {
    this.#cancelStall?.();
    try {
      const taken = await this.#take(this.#options.keepAliveMs);
      if (this.#hasEnded) return;
      if (taken === "closing" || (taken !== "late" && taken.done === true)) {
        this.end();
        controller.close();
        return;
      }
      if (taken !== "late") this.#next = undefined;
      controller.enqueue(this.#encoder.encode(taken === "late" ? KEEP_ALIVE : textOfFrame(taken.value)));
      this.#awaitReader(controller);
    } catch (error) {
      if (this.#hasEnded) return;
      this.#options.onError(error);
      this.#drop(controller);
    }
  }

  async #take(ms: number): Promise<Taken> {
    const { clock, closing } = this.#options;
    if (closing.aborted) return "closing";
    this.#next ??= this.#iterator.next();
    const { promise, resolve } = Promise.withResolvers<Taken>();
    const cancel = clock.setDelay(ms, () => resolve("late"));
    const close = (): void => resolve("closing");
    const ends = [closing, this.#left.signal];
    for (const end of ends) end.addEventListener("abort", close, { once: true });
    try {
      return await Promise.race([this.#next, promise]);
    } finally {
      cancel();
      for (const end of ends) end.removeEventListener("abort", close);
    }
  }

  /** Drops the client unless it reads this frame in time. */
  #awaitReader(controller: ReadableStreamDefaultController<Uint8Array>): void {
    const { clock, stallMs } = this.#options;
    this.#cancelStall = clock.setDelay(stallMs, () => {
      if (!this.#hasEnded) this.#drop(controller);
    });
  }

  /**
   * Ends the stream with an error, so that the client knows that frames are missing. Servers may show the error's text.
   */
  #drop(controller: ReadableStreamDefaultController<Uint8Array>): void {
    this.end();
    const { cut } = this.#options;
    if (cut) cut();
    else controller.error(new Error("the stream was cut off"));
  }
}

function textOfFrame({ id, event, data }: SseFrame): string {
  const lines = data.split(/\r\n|\r|\n/).map((line) => `data: ${line}\n`);
  return `${id === undefined ? "" : `id: ${oneLine(id)}\n`}${event === undefined ? "" : `event: ${oneLine(event)}\n`}${lines.join("")}\n`;
}

/** A line break would start another field. */
function oneLine(text: string): string {
  return text.replaceAll(/[\r\n\0]/g, " ");
}
