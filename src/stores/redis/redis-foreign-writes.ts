import { type ForeignWrite, ForeignWriteList, type ForeignWrites } from "../rules/foreign-writes.ts";
import { agentOfRecord, type RedisKeys } from "./redis-keys.ts";
import type { TreeSession } from "./redis-session.ts";
import type { RedisSubscriber } from "./redis-subscriber.ts";

/**
 * Parses a message. Invalid fields count as unknown: another version of troupe, or another client that may publish, may have written
 * them. `undefined` if the text is not such a message.
 */
function partsOf(text: string): ({ tag: string } & Omit<ForeignWrite, "tenant" | "rootAgentId">) | undefined {
  const parts: unknown = JSON.parse(text);
  if (!Array.isArray(parts) || parts.length > 4) return undefined;
  const [tag, timerAt, posted, records]: unknown[] = parts;
  if (typeof tag !== "string") return undefined;
  return {
    tag,
    timerAt: typeof timerAt === "number" ? timerAt : null,
    posted: areTexts(posted) ? posted : null,
    records: areTexts(records) ? records : null,
  };
}

function areTexts(value: unknown): value is string[] {
  return Array.isArray(value) && value.every((one) => typeof one === "string");
}

/** Shortest interval between two calls of listeners, in milliseconds, however much is written. */
const QUIET_MS = 5;
/** Slow listeners are called less often, so that they use at most 1/20 of the time. */
const REST_PARTS = 20;
/** Longest pause between two calls, in milliseconds. */
const LONGEST_QUIET_MS = 50;
/** A message names at most this many agents; without names its receivers check all of their agents in the tree. */
const MOST_NAMED = 16;

/**
 * The message that informs other processes of a transaction: the tree, the time of its first timer, the agents whose inbox got an item,
 * and the agents whose records changed. Empty if other processes do not need it.
 */
export function noticeOf({ tree, operations, written, whole }: TreeSession): string {
  // Heartbeats need no message: processes read them on demand.
  if (!tree.tag.includes("/")) return "";
  const prefix = tree.ofAgent("inbox", "").length;
  const posted: string[] = [];
  const records: string[] = [];
  let timerAt: number | null = null;
  let isToTell = written.size > 0;
  for (let at = 0; at < operations.length; at += 1) {
    const operation = operations[at];
    if (operation === undefined) continue;
    const name = operation[0];
    const target = operation[1];
    const key = typeof target === "object" ? target.key : "";
    if (name !== "highest") isToTell = true;
    if (name === "item") note(posted, key.slice(prefix));
    else if (name === "place" && key === tree.due)
      timerAt = Math.min(Number(operation[3]), timerAt ?? Number.POSITIVE_INFINITY);
  }
  if (!isToTell) return "";
  written.forEach((_, field) => {
    const agentId = agentOfRecord(field);
    if (agentId !== undefined) note(records, agentId);
  });
  return JSON.stringify([tree.tag, timerAt, named(posted), whole ? null : named(records)]);
}

/** Stops at one id above the limit, which is enough to see that there are too many. */
function note(agentIds: string[], agentId: string): void {
  if (agentIds.length <= MOST_NAMED && !agentIds.includes(agentId)) agentIds.push(agentId);
}

function named(agentIds: readonly string[]): readonly string[] | null {
  return agentIds.length > MOST_NAMED ? null : agentIds;
}

const nobody: readonly string[] = [];

/** Callbacks that run at once, before the listeners. */
interface ForeignWriteHooks {
  /** Called when the channel is subscribed, for the first time or again. */
  readonly onSubscribed: () => void;
  /** Called when another process has written to the tree: to the inboxes and records of these agents, if the message names them. */
  readonly onTree: (tag: string, posted: readonly string[], records: readonly string[]) => void;
}

/** Calls listeners when another process has written. Every transaction publishes its writes on one channel. */
export class RedisForeignWrites {
  readonly #subscriber: RedisSubscriber;
  readonly #keys: RedisKeys;
  readonly #owner: string;
  readonly #hooks: ForeignWriteHooks;
  readonly #listeners = new Set<(writes: ForeignWrites) => void>();
  /** The writes since the last call of the listeners. */
  #writes: ForeignWrite[] | "any" = [];
  #isSubscribed = false;
  /** Listeners are not called before this time (of `performance.now()`). */
  #quietUntil = Number.NEGATIVE_INFINITY;
  #pending: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(subscriber: RedisSubscriber, keys: RedisKeys, owner: string, hooks: ForeignWriteHooks) {
    this.#subscriber = subscriber;
    this.#keys = keys;
    this.#owner = owner;
    this.#hooks = hooks;
  }

  listen(listener: (writes: ForeignWrites) => void): () => void {
    // A wrapper, so that the same listener can be added twice.
    const entry = (writes: ForeignWrites): void => listener(writes);
    this.#listeners.add(entry);
    this.#subscribe();
    return () => {
      this.#listeners.delete(entry);
    };
  }

  close(): void {
    this.#isClosed = true;
    this.#listeners.clear();
    clearTimeout(this.#pending);
  }

  /** Subscribes with the first listener, until the stores are closed. */
  #subscribe(): void {
    if (this.#isSubscribed) return;
    this.#isSubscribed = true;
    this.#subscriber.subscribe(this.#keys.channel(), {
      onMessage: (message) => {
        // The message is the sender, a space, and its writes.
        if (message.startsWith(`${this.#owner} `)) return;
        this.#notify(this.#writeOf(message.slice(message.indexOf(" ") + 1)));
      },
      // Writes before the subscription, or during an interruption, are unknown.
      onSubscribed: () => {
        this.#notify("any");
        if (!this.#isClosed) this.#hooks.onSubscribed();
      },
    });
  }

  #writeOf(text: string): ForeignWrite | "any" {
    try {
      const parts = partsOf(text);
      if (!parts) return "any";
      const { tag, timerAt, posted, records } = parts;
      this.#hooks.onTree(tag, posted ?? nobody, records ?? nobody);
      return { ...this.#keys.namesIn(tag), timerAt, posted, records };
    } catch {
      return "any";
    }
  }

  #notify(write: ForeignWrite | "any"): void {
    if (this.#isClosed) return;
    if (write === "any") this.#writes = "any";
    else if (this.#writes !== "any") this.#writes.push(write);
    if (this.#pending) return;
    const wait = Math.max(0, this.#quietUntil - performance.now());
    this.#pending = setTimeout(() => {
      this.#pending = undefined;
      const start = performance.now();
      const writes = this.#writes === "any" ? this.#writes : new ForeignWriteList(this.#writes);
      this.#writes = [];
      for (const listener of this.#listeners) listener(writes);
      const took = performance.now() - start;
      this.#quietUntil = start + Math.min(LONGEST_QUIET_MS, Math.max(QUIET_MS, took * REST_PARTS));
    }, wait);
    this.#pending.unref();
  }
}
