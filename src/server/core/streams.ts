import { setMaxListeners } from "node:events";
import { ServerError } from "./failures.ts";

/** The open streams of one server, by caller. */
export class OpenStreams {
  readonly #most: number;
  readonly #mostPerCaller: number;
  readonly #counts = new Map<string, number>();
  readonly #closing = new AbortController();
  #total = 0;

  constructor({ most, mostPerCaller }: { readonly most: number; readonly mostPerCaller: number }) {
    this.#most = most;
    this.#mostPerCaller = mostPerCaller;
    setMaxListeners(0, this.#closing.signal);
  }

  get total(): number {
    return this.#total;
  }

  /** Aborts when the server closes. */
  get closing(): AbortSignal {
    return this.#closing.signal;
  }

  /** Counts a stream until the returned function is called. Throws `ServerError` (429). */
  open(caller: string): () => void {
    const count = this.#counts.get(caller) ?? 0;
    if (count >= this.#mostPerCaller) throw tooMany(`you have ${count} open streams; close one of them`);
    if (this.#total >= this.#most) throw tooMany("this server has too many open streams");
    this.#counts.set(caller, count + 1);
    this.#total += 1;
    let isOpen = true;
    return () => {
      if (!isOpen) return;
      isOpen = false;
      this.#total -= 1;
      const left = (this.#counts.get(caller) ?? 1) - 1;
      if (left === 0) this.#counts.delete(caller);
      else this.#counts.set(caller, left);
    };
  }

  close(): void {
    this.#closing.abort();
  }
}

const RETRY_AFTER_SECONDS = "5";

function tooMany(message: string): ServerError {
  return new ServerError("rate_limited", message, { headers: { "retry-after": RETRY_AFTER_SECONDS } });
}
