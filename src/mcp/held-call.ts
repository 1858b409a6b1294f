import { abortable } from "../base/index.ts";
import type { Json, JsonObject } from "../state/index.ts";
import type { ServerInput } from "./call-note.ts";

/** A request that a server makes during a call, and which it waits for. */
export interface HeldRequest {
  readonly input: ServerInput;
  readonly answer: (response: JsonObject) => void;
  readonly refuse: (error: Error) => void;
}

/** What a call that is under way hands to its server's connection. */
export interface HeldParts {
  readonly signal: AbortSignal;
  readonly onProgress: (update: Json) => void;
}

/**
 * A call that has been sent and not been answered. It outlives the code that sent it, because a person may have to decide on a request
 * of the server in between. Invariants:
 * 1. Requests are handed out in their order, and each until it is answered or refused.
 * 2. The result is handed out after the requests that came before it were answered.
 */
export class HeldCall<Result> {
  readonly id = crypto.randomUUID();
  readonly #ending = new AbortController();
  readonly #requests: HeldRequest[] = [];
  #end: { readonly result: Promise<Result> } | undefined;
  #news = Promise.withResolvers<void>();
  #onProgress: (update: Json) => void = () => undefined;

  constructor(send: (parts: HeldParts, call: HeldCall<Result>) => Promise<Result>) {
    const parts = { signal: this.#ending.signal, onProgress: (update: Json) => this.#onProgress(update) };
    const result = send(parts, this);
    const ended = (): void => {
      this.#end = { result };
      // The server does not wait for answers any more.
      for (const { refuse } of this.#requests.splice(0)) refuse(new Error("the call has ended"));
      this.#news.resolve();
    };
    result.then(ended, ended);
  }

  /** Called for a request of the server; resolves with the answer for it. */
  async ask(input: ServerInput, signal: AbortSignal): Promise<JsonObject> {
    const { promise, resolve, reject } = Promise.withResolvers<JsonObject>();
    const request: HeldRequest = {
      input,
      answer: (response) => this.#over(request, () => resolve(response)),
      refuse: (error) => this.#over(request, () => reject(error)),
    };
    this.#requests.push(request);
    this.#news.resolve();
    signal.addEventListener("abort", () => request.refuse(new Error("the server has withdrawn its request")));
    return await promise;
  }

  /** The next request of the server, or the result. Rejects as the call does, and if the signal is aborted, which ends the call. */
  async next(parts: HeldParts): Promise<{ readonly request: HeldRequest } | { readonly result: Result }> {
    const { signal, onProgress } = parts;
    const abort = (): void => this.abort(signal.reason);
    signal.addEventListener("abort", abort);
    if (signal.aborted) abort();
    this.#onProgress = onProgress;
    try {
      for (;;) {
        const [request] = this.#requests;
        if (request) return { request };
        if (this.#end) return { result: await this.#end.result };
        this.#news = Promise.withResolvers();
        await abortable(this.#news.promise, signal).catch((error: unknown) => {
          if (this.#end === undefined) throw error;
        });
      }
    } finally {
      signal.removeEventListener("abort", abort);
      this.#onProgress = () => undefined;
    }
  }

  abort(reason?: unknown): void {
    this.#ending.abort(reason);
  }

  #over(request: HeldRequest, settle: () => void): void {
    const index = this.#requests.indexOf(request);
    if (index >= 0) this.#requests.splice(index, 1);
    settle();
  }
}
