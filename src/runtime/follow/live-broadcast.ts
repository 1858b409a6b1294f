import { type Clock, toJson } from "../../base/index.ts";
import type { LiveChannel, LivePlace, LiveFollowing } from "../../stores/index.ts";
import { type LivePart, type LivePartOf, livePartSchema } from "./live-part.ts";
import type { Viewers } from "../../actors/index.ts";
import type { EntryOf, EventSource } from "../../state/index.ts";
import type { EventBus, LiveListener } from "./event-bus.ts";
import type { LiveWarning } from "../agent/committer.ts";

/** Who stops to follow may be back in a moment: for so long answers are streamed as if it were there. */
const COMING_BACK_MS = 15_000;

export interface LiveBroadcastOptions {
  readonly bus: EventBus;
  readonly channel: LiveChannel;
  readonly tenant: string;
  readonly processId: string;
  readonly clock: Clock;
}

/**
 * What is said in this process and is not stored: answers as they are written, and how far tools are.
 * Owns: the answers that are being written here, as far as they have come. Does not own: who listens.
 *
 * Invariants
 * 1. Nothing waits for whoever watches, and nothing is made where nobody does.
 * 2. An answer is open here from its call's beginning to its end; what is open is told to whoever asks.
 */
export class LiveBroadcast {
  readonly #options: LiveBroadcastOptions;
  readonly #sender: LiveSender;
  readonly #open = new Set<LivePartOf<"whole">>();
  /** Trees that were followed here a moment ago, until when. */
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
        // The tool may go on with the object that it gave.
        const copied = toJson(update);
        this.#tell({ kind: "progress", ...place, callId, name, update: copied.ok ? copied.json : null });
      },
    };
  }

  /** Tells whoever follows now of what the stores cannot be told. */
  warn(source: EventSource, warning: LiveWarning): void {
    this.#tell({ kind: "warning", ...this.#placeOf(source), attempt: 1, ...warning });
    this.#sender.flush(source.rootAgentId);
  }

  /** The answers of a tree that are being written in this process. */
  openIn(rootAgentId: string): LivePart[] {
    const at = this.#options.clock.now();
    return [...this.#open].filter((part) => part.rootAgentId === rootAgentId).map((part) => ({ ...part, at }));
  }

  /** Everything that is said about a tree, here and in other processes, with what is open here to begin with. */
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

/** What others sent: of another version it may hold what is not known here. */
function partsIn(message: string): readonly LivePart[] {
  try {
    return partsSchema.safeParse(JSON.parse(message)).data ?? [];
  } catch {
    return [];
  }
}

/** How long pieces are gathered before they are sent together, in milliseconds. */
const GATHER_MS = 30;
/** Parts of one tree, and characters in them, that may wait to be sent; what comes after them is dropped. */
const MOST_PARTS = 500;
const MOST_CHARACTERS = 500_000;

export interface LiveSenderOptions extends Pick<LivePlace, "tenant" | "processId"> {
  readonly channel: LiveChannel;
  readonly clock: Clock;
}

interface Waiting {
  /** Text and reasoning of a call are one part each, whatever else comes in between. */
  readonly parts: Map<string, LivePart>;
  size: number;
}

/** Sends what is said live to other processes, many pieces at a time, where somebody there follows. */
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
  // What was dropped in between is found missing by its offset.
  else if (known.offset + known.text.length === part.offset) {
    waiting.parts.set(key, { ...known, text: known.text + part.text });
  }
}
