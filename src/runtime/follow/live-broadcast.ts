import { type Clock, toJson } from "../../base/index.ts";
import type { LiveChannel, LivePlace, LiveFollowing } from "../../stores/index.ts";
import { type LivePart, type LivePartOf, livePartSchema } from "./live-part.ts";
import type { Viewers } from "../../actors/index.ts";
import type { EntryOf, EventSource } from "../../state/index.ts";
import type { EventBus, LiveListener } from "./event-bus.ts";
import type { LiveWarning } from "../agent/committer.ts";

/**
 * A follower that leaves may return in a moment. For this long, in milliseconds, answers are streamed as if it were
 * still there.
 */
const COMING_BACK_MS = 15_000;

export interface LiveBroadcastOptions {
  readonly bus: EventBus;
  readonly channel: LiveChannel;
  readonly tenant: string;
  readonly processId: string;
  readonly clock: Clock;
}

/**
 * Sends the live parts of this process, which are not stored: answers as they are written, and the progress of tools.
 * Owns: the answers that are being written here, with their text so far. Does not own: the listeners.
 *
 * Invariants
 * 1. Work never waits for listeners, and parts are made only if there are any.
 * 2. An answer is open here from the start of its call to its end; a follower that asks gets all open answers.
 */
export class LiveBroadcast {
  readonly #options: LiveBroadcastOptions;
  readonly #sender: LiveSender;
  readonly #open = new Set<LivePartOf<"whole">>();
  /** Trees whose last follower here has left, with the time until which they count as followed. */
  readonly #followedUntil = new Map<string, number>();
  readonly #stop: () => void;

  constructor(options: LiveBroadcastOptions) {
    const { channel, tenant, processId, clock } = options;
    this.#options = options;
    this.#sender = new LiveSender({ channel, tenant, processId, clock });
    this.#stop = channel.onAsked(processId, (asked, rootAgentId) => {
      if (asked === tenant) for (const part of this.openIn(rootAgentId)) this.#sender.add(part);
    });
  }

  viewersOf(source: EventSource): Viewers {
    return {
      isAny: () => this.#isWatched(source.rootAgentId),
      showAnswer: (granted) => this.#showAnswer(source, granted),
      showProgress: (call, update) => {
        const { turnId, step, callId, name } = call;
        if (!this.#isWatched(source.rootAgentId)) return;
        const place = { ...this.#placeOf(source), turnId, step, attempt: Math.max(1, call.attempt) };
        // Copied, because the tool may change its object later.
        const copied = toJson(update);
        this.#tell({ kind: "progress", ...place, callId, name, update: copied.ok ? copied.json : null });
      },
    };
  }

  /** Sends a warning to the current followers only; it cannot be stored. */
  warn(source: EventSource, warning: LiveWarning): void {
    this.#tell({ kind: "warning", ...this.#placeOf(source), attempt: 1, ...warning });
    this.#sender.flush(source.rootAgentId);
  }

  /** The answers of a tree that are being written in this process. */
  openIn(rootAgentId: string): LivePart[] {
    const at = this.#options.clock.now();
    return [...this.#open].filter((part) => part.rootAgentId === rootAgentId).map((part) => ({ ...part, at }));
  }

  /**
   * Calls the listener with all live parts of a tree, from here and from other processes, starting with the answers
   * that are open here.
   */
  follow(rootAgentId: string, listener: LiveListener): LiveFollowing {
    const { bus, channel, tenant, processId, clock } = this.#options;
    const stopHere = bus.listenLive(listener, rootAgentId);
    const there = channel.follow({ tenant, rootAgentId, processId }, (message) => {
      for (const part of partsIn(message)) if (part.rootAgentId === rootAgentId) listener(part);
    });
    const tellOpen = (): void => this.openIn(rootAgentId).forEach(listener);
    tellOpen();
    const ask = (): void => {
      tellOpen();
      there.ask();
    };
    const end = (): void => {
      stopHere();
      there.end();
      this.#followedUntil.set(rootAgentId, clock.elapsed() + COMING_BACK_MS);
      for (const [root, until] of this.#followedUntil) {
        if (until <= clock.elapsed()) this.#followedUntil.delete(root);
      }
    };
    return { ask, end };
  }

  close(): void {
    this.#stop();
    this.#sender.close();
    this.#open.clear();
  }

  #isWatched(rootAgentId: string): boolean {
    const { bus, channel, tenant, processId, clock } = this.#options;
    if (bus.hasListeners(rootAgentId) || channel.isFollowed({ tenant, rootAgentId, processId })) return true;
    return (this.#followedUntil.get(rootAgentId) ?? Number.NEGATIVE_INFINITY) > clock.elapsed();
  }

  #showAnswer(source: EventSource, { turnId, step, attempt, seq }: EntryOf<"model.requested">) {
    const said = { ...this.#placeOf(source), turnId, step, attempt, seq };
    const open = { kind: "whole" as const, ...said, text: "", reasoning: "" };
    this.#open.add(open);
    const add: ReturnType<Viewers["showAnswer"]>["add"] = ({ type, text }) => {
      if (text === "" || !this.#open.has(open)) return;
      const offset = open[type].length;
      open[type] += text;
      this.#tell({ kind: type, ...said, at: this.#options.clock.now(), offset, text });
    };
    const end = (): void => {
      if (this.#open.delete(open)) this.#sender.flush(open.rootAgentId);
    };
    return { add, end };
  }

  #tell(part: LivePart): void {
    this.#options.bus.publishLive(part);
    this.#sender.add(part);
  }

  #placeOf(source: EventSource) {
    const { agentId, parentAgentId, rootAgentId, sessionId, definition } = source;
    const { bus, clock } = this.#options;
    const who = { agentId, agentName: definition.name, parentAgentId, rootAgentId, sessionId };
    return { ...who, at: clock.now(), cursor: bus.cursorOf(source) };
  }
}

const partsSchema = livePartSchema.array();

/** The parts in a message; none if it is of another version and cannot be read. */
function partsIn(message: string): readonly LivePart[] {
  try {
    return partsSchema.safeParse(JSON.parse(message)).data ?? [];
  } catch {
    return [];
  }
}

/** How long pieces are gathered before they are sent together, in milliseconds. */
const GATHER_MS = 30;
/**
 * Limits for the parts of one tree that wait to be sent, and for the characters in them; parts beyond them are dropped.
 */
const MOST_PARTS = 500;
const MOST_CHARACTERS = 500_000;

export interface LiveSenderOptions extends Pick<LivePlace, "tenant" | "processId"> {
  readonly channel: LiveChannel;
  readonly clock: Clock;
}

interface Waiting {
  /** Text and reasoning of a call are one part each, even when other parts come in between. */
  readonly parts: Map<string, LivePart>;
  size: number;
}

/** Sends live parts to other processes in batches, for trees that are followed there. */
export class LiveSender {
  readonly #options: LiveSenderOptions;
  readonly #waiting = new Map<string, Waiting>();
  #cancel: (() => void) | undefined;

  constructor(options: LiveSenderOptions) {
    this.#options = options;
  }

  add(part: LivePart): void {
    const { rootAgentId } = part;
    if (!this.#options.channel.isFollowed(this.#placeOf(rootAgentId))) return;
    const waiting = this.#waiting.get(rootAgentId) ?? { parts: new Map<string, LivePart>(), size: 0 };
    this.#waiting.set(rootAgentId, waiting);
    if (waiting.parts.size >= MOST_PARTS || waiting.size >= MOST_CHARACTERS) return;
    gather(waiting, part);
    this.#cancel ??= this.#options.clock.setDelay(GATHER_MS, () => {
      this.#cancel = undefined;
      for (const root of this.#waiting.keys()) this.flush(root);
    });
  }

  /** Sends what waits for a tree at once. */
  flush(rootAgentId: string): void {
    const waiting = this.#waiting.get(rootAgentId);
    if (!waiting) return;
    this.#waiting.delete(rootAgentId);
    this.#options.channel.send(this.#placeOf(rootAgentId), JSON.stringify([...waiting.parts.values()]));
  }

  close(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#waiting.clear();
  }

  #placeOf(rootAgentId: string): LivePlace {
    const { tenant, processId } = this.#options;
    return { tenant, processId, rootAgentId };
  }
}

function gather(waiting: Waiting, part: LivePart): void {
  if (part.kind === "progress" || part.kind === "warning") {
    waiting.parts.set(`${part.kind} ${waiting.parts.size}`, part);
    waiting.size += part.kind === "warning" ? part.message.length : JSON.stringify(part.update).length;
    return;
  }
  const key = `${part.kind} ${part.agentId} ${part.seq}`;
  const known = waiting.parts.get(key);
  waiting.size += part.text.length;
  if (part.kind === "whole" || known === undefined || known.kind !== part.kind) waiting.parts.set(key, part);
  // The receiver notices dropped pieces by the offset of the next one.
  else if (known.offset + known.text.length === part.offset) {
    waiting.parts.set(key, { ...known, text: known.text + part.text });
  }
}
