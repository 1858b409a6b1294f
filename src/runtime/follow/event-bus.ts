import type { ShownAnswer, Viewers } from "../../actors/index.ts";
import { type Clock, deepFreeze, toJson } from "../../base/index.ts";
import type { Account } from "../../budget/index.ts";
import type { ModelDelta } from "../../model/index.ts";
import {
  callIdOf,
  cursorText,
  type Entry,
  type EntryOf,
  type EventSource,
  eventsOf,
  type TextLookup,
  type TroupeEvent,
} from "../../state/index.ts";
import type { Committed, LiveFollowing, LiveAddress, Stores } from "../../stores/index.ts";
import type { LiveWarning } from "../agent/committer.ts";
import type { RuntimeOptions } from "../api/runtime-types.ts";
import { OutputSoFar } from "./output-so-far.ts";
import { type ForecastCommit, ToldForecasts } from "./told-forecasts.ts";
import { eventOfPart, isNotice, type LivePart, type LivePartOf, livePartSchema, noCursor } from "./live-part.ts";

export type EventListener = (event: TroupeEvent) => void;
export type AccountListener = (accounts: readonly Account[]) => void;
export type LiveListener = (part: LivePart) => void;
export type RowListener = (row: CommittedRow) => void;

/** A row of the journal that this process has just committed. */
export interface CommittedRow {
  readonly cursor: number;
  /** The tree has no row between this cursor and `cursor`; `undefined` if unknown. */
  readonly follows: number | undefined;
  readonly source: EventSource;
  readonly entries: readonly Entry[];
  /** The public events of the entries. */
  readonly events: readonly TroupeEvent[];
  readonly textOf: TextLookup;
}

/** Carries rows, events and live parts from the trees of this process to listeners; without listeners none are built. */
export class EventBus {
  readonly #everywhere = new Set<EventListener>();
  /** Listeners that do not cause answers to be streamed. */
  readonly #observers = new Set<EventListener>();
  readonly #accounts = new Set<AccountListener>();
  readonly #rows = new Map<string, Set<RowListener>>();
  readonly #live = new Map<string, Set<LiveListener>>();
  /** The last entry that each live agent has committed, and its row. */
  readonly #last = new WeakMap<EventSource, { row: number; entry: Entry }>();

  /**
   * Listens to the events of all trees. Returns a function that removes the listener. `isReader`: the listener causes answers to
   * be streamed.
   */
  listen(listener: EventListener, { isReader = true }: { readonly isReader?: boolean } = {}): () => void {
    const listeners = isReader ? this.#everywhere : this.#observers;
    listeners.add(listener);
    return () => listeners.delete(listener);
  }

  /** Listens to the rows of one tree, as they are committed. */
  listenToRows(listener: RowListener, rootAgentId: string): () => void {
    return addTo(this.#rows, rootAgentId, listener);
  }

  /** Listens to the live parts of one tree, which are never stored. */
  listenLive(listener: LiveListener, rootAgentId: string): () => void {
    return addTo(this.#live, rootAgentId, listener);
  }

  /** Listens to changes of accounts in all trees by commits and commands of this process. */
  listenToAccounts(listener: AccountListener): void {
    this.#accounts.add(listener);
  }

  /** The roots of the trees with listeners of their own. */
  get followedRoots(): readonly string[] {
    return [...this.#rows.keys(), ...this.#live.keys()];
  }

  /** Whether a reader follows the tree live. */
  hasReaders(rootAgentId: string): boolean {
    return this.#everywhere.size > 0 || this.#rows.has(rootAgentId) || this.#live.has(rootAgentId);
  }

  /** The cursor of the last event that a live agent has committed. */
  cursorOf(source: EventSource): string {
    const last = this.#last.get(source);
    if (!last) return noCursor;
    const { row, entry } = last;
    const end = cursorText({ row, seq: entry.seq, index: 0 });
    return eventsOf(entry, source, row, () => "").at(-1)?.cursor ?? end;
  }

  /** Must be called when the agent is not live any more. */
  forget(source: EventSource): void {
    this.#last.delete(source);
  }

  publishCommitted({ entries, cursor, follows, accounts }: Committed, source: EventSource, textOf: TextLookup): void {
    if (accounts?.length) this.publishAccounts(accounts);
    const last = entries.at(-1);
    if (!last) return;
    const known = this.#last.get(source);
    if (known) {
      known.row = cursor;
      known.entry = last;
    } else this.#last.set(source, { row: cursor, entry: last });
    if (this.#observers.size === 0 && !this.hasReaders(source.rootAgentId)) return;
    // Frozen, because all listeners share them.
    const events = deepFreeze(entries.flatMap((entry) => eventsOf(entry, source, cursor, textOf)));
    for (const event of events) this.#tellAll(event);
    const row = { cursor, follows, source, entries, events, textOf };
    for (const listener of this.#rows.get(source.rootAgentId) ?? []) listener(row);
  }

  publishAccounts(accounts: readonly Account[]): void {
    for (const listener of this.#accounts) listener(accounts);
  }

  publishLive(part: LivePart): void {
    for (const listener of this.#live.get(part.rootAgentId) ?? []) listener(part);
    if (this.#everywhere.size + this.#observers.size > 0) this.#tellAll(eventOfPart(part, part.cursor));
  }

  #tellAll(event: TroupeEvent): void {
    for (const listener of this.#everywhere) listener(event);
    for (const listener of this.#observers) listener(event);
  }
}

function addTo<Listener>(map: Map<string, Set<Listener>>, key: string, listener: Listener): () => void {
  const listeners = map.get(key) ?? new Set();
  map.set(key, listeners.add(listener));
  return () => {
    listeners.delete(listener);
    if (listeners.size === 0 && map.get(key) === listeners) map.delete(key);
  };
}

/** How long answers are still streamed after a follower has left, in milliseconds, because it may return soon. */
const COMING_BACK_MS = 15_000;

export interface LiveBroadcastOptions {
  readonly bus: EventBus;
  readonly stores: Pick<Stores, "live">;
  readonly tenant: string;
  readonly processId: string;
  readonly clock: Clock;
  readonly streaming: NonNullable<RuntimeOptions["streaming"]>;
}

/**
 * Sends the live parts of this process, which are not stored: answers while they are written, and the progress of tools.
 * Owns: the answers being written in this process, with their text so far. Does not own: the listeners.
 *
 * Invariants
 * 1. Work never waits for listeners. Without listeners no parts are built; with `streaming: "always"` answers are kept for later
 *    followers.
 * 2. An answer is open from the start of its call to its end; a follower that asks receives all open answers.
 */
export class LiveBroadcast {
  readonly #options: LiveBroadcastOptions;
  readonly #sender: LiveSender;
  readonly #open = new Set<OpenAnswer>();
  readonly #forecasts = new ToldForecasts();
  /** Trees whose last follower in this process has left, with the time until which they count as followed. */
  readonly #followedUntil = new Map<string, number>();
  readonly #stop: () => void;

  constructor(options: LiveBroadcastOptions) {
    const { stores, tenant, processId, clock } = options;
    this.#options = options;
    this.#sender = new LiveSender({ stores, tenant, processId, clock });
    this.#stop = stores.live.onAsked(processId, (asked, rootAgentId) => {
      if (asked === tenant) for (const part of this.openIn(rootAgentId)) this.#sender.add(part);
    });
  }

  viewersOf(source: EventSource): Viewers {
    return {
      isStreaming: () => this.#options.streaming === "always" || this.#isWatched(source.rootAgentId),
      showAnswer: (granted, partial) => this.#showAnswer(source, granted, partial),
      showProgress: (call, update) => {
        const { turnId, step, callId, name } = call;
        if (!this.#isWatched(source.rootAgentId)) return;
        const place = { ...this.#originOf(source), turnId, step, attempt: Math.max(1, call.attempt) };
        // Copied, because the tool may change its object later.
        const copied = toJson(update);
        this.#tell({ kind: "progress", ...place, callId, name, update: copied.ok ? copied.json : null });
      },
    };
  }

  /** Sends a warning to the current followers only; it cannot be stored. */
  warn(source: EventSource, warning: LiveWarning): void {
    this.#tell({ kind: "warning", ...this.#originOf(source), attempt: 1, ...warning });
    this.#sender.flush(source.rootAgentId);
  }

  /** Sends the forecasts of accounts that a commit has changed to the current followers; a forecast that tells nothing new is left out. */
  forecast(source: EventSource, commit: ForecastCommit): void {
    const { rootAgentId } = source;
    if (!this.#isWatched(rootAgentId)) return;
    const { turnId, step, at } = commit;
    for (const figures of this.#forecasts.next(source, commit)) {
      this.#tell({ kind: "forecast", ...this.#originOf(source), attempt: 1, turnId, step, at, ...figures });
    }
  }

  /** The answers of a tree that are being written in this process. */
  openIn(rootAgentId: string): LivePart[] {
    const at = this.#options.clock.now();
    const open = [...this.#open].filter((part) => part.rootAgentId === rootAgentId);
    // Copied, because the calls grow.
    return open.map((part) => ({ ...part, at, calls: part.calls.map((call) => ({ ...call })) }));
  }

  /**
   * Calls the listener with all live parts of a tree, from this and other processes, starting with the open answers of this
   * process.
   */
  follow(rootAgentId: string, listener: LiveListener): LiveFollowing {
    const { bus, stores, tenant, processId, clock } = this.#options;
    const stopHere = bus.listenLive(listener, rootAgentId);
    const there = stores.live.follow({ tenant, rootAgentId, processId }, (message) => {
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
    const { bus, stores, tenant, processId, clock } = this.#options;
    if (bus.hasReaders(rootAgentId) || stores.live.isFollowed({ tenant, rootAgentId, processId })) return true;
    return (this.#followedUntil.get(rootAgentId) ?? Number.NEGATIVE_INFINITY) > clock.elapsed();
  }

  #showAnswer(
    source: EventSource,
    { turnId, step, attempt, seq }: EntryOf<"model.requested">,
    partial: Parameters<Viewers["showAnswer"]>[1],
  ): ShownAnswer {
    const said = { ...this.#originOf(source), turnId, step, attempt, seq };
    const open: OpenAnswer = { kind: "whole", ...said, text: "", reasoning: "", calls: [] };
    this.#open.add(open);
    const output = partial && new OutputSoFar(partial);
    const showOutput = (isComplete: boolean): void => {
      if (output === undefined || !this.#open.has(open) || !this.#isWatched(open.rootAgentId)) return;
      const value = output.next(open.text, isComplete);
      if (value !== undefined) this.#tell({ kind: "output", ...said, at: this.#options.clock.now(), output: value });
    };
    const add: ShownAnswer["add"] = (delta) => {
      const news = this.#open.has(open) ? added(open, delta) : undefined;
      if (news === undefined) return;
      this.#tell({ ...said, ...news, at: this.#options.clock.now() });
      if (news.kind === "text") showOutput(false);
    };
    const complete = (): void => showOutput(true);
    const end = (): void => {
      if (this.#open.delete(open)) this.#sender.flush(open.rootAgentId);
    };
    return { add, complete, end };
  }

  #tell(part: LivePart): void {
    this.#options.bus.publishLive(part);
    this.#sender.add(part);
  }

  #originOf(source: EventSource) {
    const { agentId, parentAgentId, rootAgentId, sessionId, definition } = source;
    const { bus, clock } = this.#options;
    const who = { agentId, agentName: definition.name, parentAgentId, rootAgentId, sessionId };
    return { ...who, at: clock.now(), cursor: bus.cursorOf(source) };
  }
}

/** An answer that is being written. */
interface OpenAnswer extends Omit<LivePartOf<"whole">, "text" | "reasoning" | "calls"> {
  text: string;
  reasoning: string;
  readonly calls: { readonly index: number; readonly callId: string; readonly name: string; text: string }[];
}

type News =
  | Pick<LivePartOf<"text" | "reasoning">, "kind" | "offset" | "text">
  | Pick<LivePartOf<"call">, "kind" | "offset" | "text" | "index" | "callId" | "name">;

/** Adds a piece of a model's answer; `undefined` if it changes nothing for followers. */
function added(open: OpenAnswer, delta: ModelDelta): News | undefined {
  if (delta.type === "tool-call") {
    const { index, name } = delta;
    if (open.calls.some((call) => call.index === index)) return undefined;
    const call = { index, callId: callIdOf(open.turnId, open.step, index), name, text: "" };
    open.calls.push(call);
    return { kind: "call", ...call, offset: 0 };
  }
  const { type, text } = delta;
  if (text === "") return undefined;
  if (type !== "tool-arguments") {
    const offset = open[type].length;
    open[type] += text;
    return { kind: type, offset, text };
  }
  const call = open.calls.find(({ index }) => index === delta.index);
  if (call === undefined) return undefined;
  const offset = call.text.length;
  call.text += text;
  return { kind: "call", ...call, offset, text };
}

/** The parts in a message; parts of another version that are unreadable are left out. */
export function partsIn(message: string): readonly LivePart[] {
  try {
    const parts = JSON.parse(message) as unknown;
    if (!Array.isArray(parts)) return [];
    return parts.flatMap((part) => livePartSchema.safeParse(part).data ?? []);
  } catch {
    return [];
  }
}

/** How long pieces are collected before they are sent together, in milliseconds. */
const GATHER_MS = 30;
/** Limits on the parts of one tree that wait to be sent, and on their characters; further parts are dropped. */
const MOST_PARTS = 500;
const MOST_CHARACTERS = 500_000;

export interface LiveSenderOptions extends Pick<LiveAddress, "tenant" | "processId"> {
  readonly stores: Pick<Stores, "live">;
  readonly clock: Clock;
}

interface Waiting {
  /** Text, reasoning and each tool call of an answer are one part each, even if other parts come in between. */
  readonly parts: Map<string, LivePart>;
  size: number;
}

/** Sends live parts to other processes in batches, for trees that other processes follow. */
export class LiveSender {
  readonly #options: LiveSenderOptions;
  readonly #waiting = new Map<string, Waiting>();
  #cancel: (() => void) | undefined;

  constructor(options: LiveSenderOptions) {
    this.#options = options;
  }

  add(part: LivePart): void {
    const { rootAgentId } = part;
    if (!this.#options.stores.live.isFollowed(this.#addressOf(rootAgentId))) return;
    const waiting = this.#waiting.get(rootAgentId) ?? { parts: new Map<string, LivePart>(), size: 0 };
    this.#waiting.set(rootAgentId, waiting);
    if (waiting.parts.size >= MOST_PARTS || waiting.size >= MOST_CHARACTERS) return;
    gather(waiting, part);
    this.#cancel ??= this.#options.clock.setDelay(GATHER_MS, () => {
      this.#cancel = undefined;
      for (const root of this.#waiting.keys()) this.flush(root);
    });
  }

  /** Sends the waiting parts of a tree immediately. */
  flush(rootAgentId: string): void {
    const waiting = this.#waiting.get(rootAgentId);
    if (!waiting) return;
    this.#waiting.delete(rootAgentId);
    this.#options.stores.live.send(this.#addressOf(rootAgentId), JSON.stringify([...waiting.parts.values()]));
  }

  close(): void {
    this.#cancel?.();
    this.#cancel = undefined;
    this.#waiting.clear();
  }

  #addressOf(rootAgentId: string): LiveAddress {
    const { tenant, processId } = this.#options;
    return { tenant, processId, rootAgentId };
  }
}

function gather(waiting: Waiting, part: LivePart): void {
  if (part.kind === "progress" || isNotice(part)) {
    waiting.parts.set(`${part.kind} ${waiting.parts.size}`, part);
    waiting.size += part.kind === "progress" ? JSON.stringify(part.update).length : part.message.length;
    return;
  }
  const key = `${part.kind} ${part.agentId} ${part.seq} ${part.kind === "call" ? part.index : ""}`;
  if (part.kind === "output") {
    // Behind the text that it was read from; it replaces the value that waits.
    waiting.parts.delete(key);
    waiting.parts.set(key, part);
    waiting.size += JSON.stringify(part.output).length;
    return;
  }
  const known = waiting.parts.get(key);
  waiting.size += part.text.length;
  if (part.kind === "whole" || known === undefined || known.kind !== part.kind) waiting.parts.set(key, part);
  // The receiver detects dropped pieces by the offset of the next one.
  else if (known.offset + known.text.length === part.offset) {
    waiting.parts.set(key, { ...known, text: known.text + part.text });
  }
}
