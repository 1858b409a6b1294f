import { setTimeout as delay } from "node:timers/promises";
import type { ForeignWrite, ForeignWrites } from "./foreign-write.ts";
import type { RedisConnection } from "./redis-connection.ts";
import type { RedisKeys } from "./redis-keys.ts";
import type { RedisClient } from "./redis-options.ts";
import type { TreeSession } from "./redis-session.ts";

type Notice = readonly [tag: string, timerAt: number | null, posted: readonly string[] | null];

/** Listeners are called at most once in so many milliseconds, however much is written. */
const QUIET_MS = 50;
const RETRY_MS = 500;
/** More of them are not named in a message: whoever hears it looks at all that it has of the tree. */
const MOST_POSTED = 16;

/**
 * What others are told of a transaction, behind who it is of: the tree, the time of its first timer and whose inboxes got
 * something. Empty where nobody needs to know.
 */
export function noticeOf({ tree, operations, written }: TreeSession): string {
  // Signs of life are for whoever asks for them.
  if (!tree.tag.includes("/")) return "";
  if (written.size === 0 && operations.every(([name]) => name === "highest")) return "";
  const inboxes = new Set<string>();
  let timerAt: number | null = null;
  for (const [name, target, , value] of operations) {
    const key = typeof target === "object" ? target.key : "";
    if (name === "item") inboxes.add(key);
    if (name === "place" && key === tree.due) timerAt = Math.min(Number(value), timerAt ?? Number(value));
  }
  const prefix = tree.ofAgent("inbox", "");
  const posted = inboxes.size > MOST_POSTED ? null : [...inboxes].map((key) => key.slice(prefix.length));
  return JSON.stringify([tree.tag, timerAt, posted]);
}

/** Tells listeners when another process has written: by the channel on which each transaction says so. */
export class RedisForeignWrites {
  readonly #connection: RedisConnection;
  readonly #keys: RedisKeys;
  readonly #owner: string;
  readonly #listeners = new Set<(writes: ForeignWrites) => void>();
  /** What was heard since listeners were called last. */
  #heard: ForeignWrite[] | "any" = [];
  #subscriber: Promise<RedisClient | undefined> | undefined;
  #lastCall = Number.NEGATIVE_INFINITY;
  #pending: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(connection: RedisConnection, keys: RedisKeys, owner: string) {
    this.#connection = connection;
    this.#keys = keys;
    this.#owner = owner;
  }

  listen(listener: (writes: ForeignWrites) => void): () => void {
    // A function of its own, so that the same listener may come twice.
    const entry = (writes: ForeignWrites): void => listener(writes);
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
      if (!message.startsWith(`${this.#owner} `)) this.#tell(this.#writeOf(message));
    });
    let isHeard = false;
    client.on("ready", () => {
      if (!isHeard) return;
      // What was written while the connection was away was not heard. A connection that breaks once more comes here again.
      client.subscribe(this.#keys.channel()).then(
        () => this.#tell("any"),
        () => undefined,
      );
    });
    while (!this.#isClosed) {
      try {
        if (client.status === "wait" || client.status === "end") await client.connect();
        await client.subscribe(this.#keys.channel());
        isHeard = true;
        return client;
      } catch {
        await delay(RETRY_MS, undefined, { ref: false });
      }
    }
    client.disconnect();
    return undefined;
  }

  #writeOf(message: string): ForeignWrite | "any" {
    try {
      const [tag, timerAt, posted] = JSON.parse(message.slice(message.indexOf(" "))) as Notice;
      return { ...this.#keys.namesIn(tag), timerAt, posted };
    } catch {
      return "any";
    }
  }

  #tell(write: ForeignWrite | "any"): void {
    if (this.#isClosed) return;
    if (write === "any") this.#heard = "any";
    else if (this.#heard !== "any") this.#heard.push(write);
    if (this.#pending) return;
    const wait = Math.max(0, this.#lastCall + QUIET_MS - performance.now());
    this.#pending = setTimeout(() => {
      this.#pending = undefined;
      this.#lastCall = performance.now();
      const heard = this.#heard;
      this.#heard = [];
      for (const listener of this.#listeners) listener(heard);
    }, wait);
    this.#pending.unref();
  }
}
