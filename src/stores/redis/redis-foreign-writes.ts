import { z } from "zod";
import type { ForeignWrite, ForeignWrites } from "../rules/ports.ts";
import { agentOfRecord, type RedisKeys } from "./redis-keys.ts";
import type { TreeSession } from "./redis-session.ts";
import type { RedisSubscriber } from "./redis-subscriber.ts";

/** Whatever cannot be read of it counts as not known: another version may have written it, or anybody who may publish. */
const names = z.array(z.string()).nullable().catch(null);
const noticeSchema = z.tuple([z.string(), z.number().nullable().catch(null), names, names]);

/** Listeners are called at most once in so many milliseconds, however much is written. */
const QUIET_MS = 5;
/** Those who have much to look through are called less often: they take no more than one part in so many of the time. */
const REST_PARTS = 20;
/** The longest that they wait. */
const LONGEST_QUIET_MS = 50;
/** More agents are not named in a message: whoever hears it looks at all that it has of the tree. */
const MOST_NAMED = 16;

/**
 * What others are told of a transaction, behind who it is of: the tree, the time of its first timer, whose inboxes got
 * something and whose records were changed. Empty where nobody needs to know.
 */
export function noticeOf({ tree, operations, written, whole }: TreeSession): string {
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
  const posted = [...inboxes].map((key) => key.slice(prefix.length));
  const records = [...written.keys()].flatMap((field) => agentOfRecord(field) ?? []);
  return JSON.stringify([tree.tag, timerAt, named(posted), whole ? null : named(records)]);
}

function named(agentIds: readonly string[]): readonly string[] | null {
  return agentIds.length > MOST_NAMED ? null : agentIds;
}

/** What is called at once, before listeners are. */
export interface Hearing {
  /** The channel is heard, for the first time or again. */
  readonly onHeard: () => void;
  /** Another process has written to the tree. */
  readonly onTree: (tag: string) => void;
}

/** Tells listeners when another process has written: by the channel on which each transaction says so. */
export class RedisForeignWrites {
  readonly #subscriber: RedisSubscriber;
  readonly #keys: RedisKeys;
  readonly #owner: string;
  readonly #hears: Hearing;
  readonly #listeners = new Set<(writes: ForeignWrites) => void>();
  /** What was heard since listeners were called last. */
  #heard: ForeignWrite[] | "any" = [];
  #isHearing = false;
  /** Before it listeners are not called again, by `performance.now()`. */
  #quietUntil = Number.NEGATIVE_INFINITY;
  #pending: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(subscriber: RedisSubscriber, keys: RedisKeys, owner: string, hears: Hearing) {
    this.#subscriber = subscriber;
    this.#keys = keys;
    this.#owner = owner;
    this.#hears = hears;
  }

  listen(listener: (writes: ForeignWrites) => void): () => void {
    // A function of its own, so that the same listener may come twice.
    const entry = (writes: ForeignWrites): void => listener(writes);
    this.#listeners.add(entry);
    this.#hear();
    return () => {
      this.#listeners.delete(entry);
    };
  }

  close(): void {
    this.#isClosed = true;
    this.#listeners.clear();
    clearTimeout(this.#pending);
  }

  /** From the first listener on, until the stores are closed. */
  #hear(): void {
    if (this.#isHearing) return;
    this.#isHearing = true;
    this.#subscriber.hear(this.#keys.channel(), {
      onMessage: (message) => {
        if (!message.startsWith(`${this.#owner} `)) this.#tell(this.#writeOf(message));
      },
      // What was written before it was heard, or while it was not, is not known.
      onHeard: () => {
        this.#tell("any");
        if (!this.#isClosed) this.#hears.onHeard();
      },
    });
  }

  #writeOf(message: string): ForeignWrite | "any" {
    try {
      const [tag, timerAt, posted, records] = noticeSchema.parse(JSON.parse(message.slice(message.indexOf(" "))));
      this.#hears.onTree(tag);
      return { ...this.#keys.namesIn(tag), timerAt, posted, records };
    } catch {
      return "any";
    }
  }

  #tell(write: ForeignWrite | "any"): void {
    if (this.#isClosed) return;
    if (write === "any") this.#heard = "any";
    else if (this.#heard !== "any") this.#heard.push(write);
    if (this.#pending) return;
    const wait = Math.max(0, this.#quietUntil - performance.now());
    this.#pending = setTimeout(() => {
      this.#pending = undefined;
      const start = performance.now();
      const heard = this.#heard;
      this.#heard = [];
      for (const listener of this.#listeners) listener(heard);
      const took = performance.now() - start;
      this.#quietUntil = start + Math.min(LONGEST_QUIET_MS, Math.max(QUIET_MS, took * REST_PARTS));
    }, wait);
    this.#pending.unref();
  }
}
