import { setTimeout as delay } from "node:timers/promises";
import type { RedisConnection } from "./redis-connection.ts";
import type { RedisClient } from "./redis-options.ts";

/** Listeners are called at most once in so many milliseconds, however much is written. */
const QUIET_MS = 50;
const RETRY_MS = 500;

/** Tells listeners when another process has written: by the channel on which each transaction says so. */
export class RedisForeignWrites {
  readonly #connection: RedisConnection;
  readonly #channel: string;
  readonly #owner: string;
  readonly #listeners = new Set<() => void>();
  #subscriber: Promise<RedisClient | undefined> | undefined;
  #lastCall = Number.NEGATIVE_INFINITY;
  #pending: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(connection: RedisConnection, channel: string, owner: string) {
    this.#connection = connection;
    this.#channel = channel;
    this.#owner = owner;
  }

  listen(listener: () => void): () => void {
    // A function of its own, so that the same listener may come twice.
    const entry = (): void => listener();
    this.#listeners.add(entry);
    this.#subscriber ??= this.#subscribe();
    return () => {
      this.#listeners.delete(entry);
    };
  }

  async close(): Promise<void> {
    this.#isClosed = true;
    this.#listeners.clear();
    clearTimeout(this.#pending);
    (await this.#subscriber)?.disconnect();
  }

  async #subscribe(): Promise<RedisClient | undefined> {
    const client = await this.#connection.another();
    client.on("message", (_channel: string, message: string) => {
      if (!message.startsWith(`${this.#owner} `)) this.#tell();
    });
    // What was written while the connection was away was not heard.
    client.on("ready", () => this.#tell());
    while (!this.#isClosed) {
      try {
        if (client.status === "wait" || client.status === "end") await client.connect();
        await client.subscribe(this.#channel);
        return client;
      } catch {
        await delay(RETRY_MS, undefined, { ref: false });
      }
    }
    client.disconnect();
    return undefined;
  }

  #tell(): void {
    if (this.#pending || this.#isClosed) return;
    const wait = Math.max(0, this.#lastCall + QUIET_MS - performance.now());
    this.#pending = setTimeout(() => {
      this.#pending = undefined;
      this.#lastCall = performance.now();
      for (const listener of this.#listeners) listener();
    }, wait);
    this.#pending.unref();
  }
}
