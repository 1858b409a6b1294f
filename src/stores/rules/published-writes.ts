import { type ForeignWrite, ForeignWriteList, type ForeignWrites } from "./foreign-writes.ts";
import type { ChannelListener } from "./published-live.ts";

/** What one write of this process is announced as. */
export interface WriteNotice {
  /** The tree. */
  readonly tag: string;
  readonly timerAt: number | null;
  /** `null`: unknown. */
  readonly posted: readonly string[] | null;
  readonly records: readonly string[] | null;
}

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

/** A message names at most this many agents; without names its receivers check all of their agents in the tree. */
const MOST_NAMED = 16;

/** The text of a notice: the tree, the time of its first timer, and the named agents. */
export function noticeText({ tag, timerAt, posted, records }: WriteNotice): string {
  return JSON.stringify([tag, timerAt, posted && named(posted), records && named(records)]);
}

/** Stops at one id above the limit, which is enough to see that there are too many. */
export function note(agentIds: string[], agentId: string): void {
  if (agentIds.length <= MOST_NAMED && !agentIds.includes(agentId)) agentIds.push(agentId);
}

function named(agentIds: readonly string[]): readonly string[] | null {
  return agentIds.length > MOST_NAMED ? null : agentIds;
}

/** Shortest interval between two calls of listeners, in milliseconds, however much is written. */
const QUIET_MS = 5;
/** Slow listeners are called less often, so that they use at most 1/20 of the time. */
const REST_PARTS = 20;
/** Longest pause between two calls, in milliseconds. */
const LONGEST_QUIET_MS = 50;
const nobody: readonly string[] = [];

/** Callbacks that run at once, before the listeners. */
interface ForeignWriteHooks {
  /** Called when the channel is subscribed, for the first time or again. */
  readonly onSubscribed: () => void;
  /** Called when another process has written to the tree: to the inboxes and records of these agents, if the message names them. */
  readonly onTree: (tag: string, posted: readonly string[], records: readonly string[]) => void;
}

/** The channel of writes, and the names in its messages. */
interface WriteChannel {
  /** Identifies this process in messages; contains no space. */
  readonly owner: string;
  subscribe(listener: ChannelListener): void;
  namesIn(tag: string): Pick<ForeignWrite, "tenant" | "rootAgentId">;
}

/** Calls listeners when another process has written. Every transaction publishes its writes on one channel. */
export class PublishedWrites {
  readonly #channel: WriteChannel;
  readonly #hooks: ForeignWriteHooks;
  readonly #listeners = new Set<(writes: ForeignWrites) => void>();
  /** The writes since the last call of the listeners. */
  #writes: ForeignWrite[] | "any" = [];
  #isSubscribed = false;
  /** Listeners are not called before this time (of `performance.now()`). */
  #quietUntil = Number.NEGATIVE_INFINITY;
  #pending: NodeJS.Timeout | undefined;
  #isClosed = false;

  constructor(channel: WriteChannel, hooks: ForeignWriteHooks) {
    this.#channel = channel;
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
    this.#channel.subscribe({
      onMessage: (message) => {
        // The message is the sender, a space, and its writes.
        if (message.startsWith(`${this.#channel.owner} `)) return;
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
      return { ...this.#channel.namesIn(tag), timerAt, posted, records };
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
