import { createDeferred, harmless } from "../../base/index.ts";
import { StoreUnavailableError } from "../../errors/index.ts";
import { agentOfTurn, rootOf, type TroupeEvent } from "../../state/index.ts";
import type { EventBus } from "./event-bus.ts";
import { assertObserver, reasonOf } from "../doors/turn-door.ts";
import type { Reading } from "./tree-stream.ts";
import type { EventObserver, Turn, TurnRest, TurnResult } from "../doors/turn-types.ts";
import type { WaitingHold } from "./waiting-hold.ts";

/** What a turn's handle needs of its runtime. */
export interface TurnSource {
  readonly bus: EventBus;
  /** Aborted when the runtime has been shut down, with the error that those who wait are told. */
  readonly closed: AbortSignal;
  end(turnId: string): Promise<TurnResult>;
  rest(turnId: string): Promise<TurnRest>;
  abort(turnId: string, reason: string): Promise<void>;
  /** The turn under which an agent was spawned; null for a root or an unknown one. */
  parentTurnOf(agentId: string): string | null;
  /** Whether the agent lives in this process, so that its events come over the bus. */
  isLocal(turnId: string): boolean;
  /** Whether agents of one tree may live in several processes: their events are read from the journal. */
  readonly part: { readonly isDistributed: boolean };
  /** Told of whoever waits here, so that the process does not end under them. */
  readonly waiting: Pick<WaitingHold, "begin" | "until">;
  /** The tree's events from the journal, for turns that began earlier or run elsewhere; absent `after`: from the start. */
  replay(rootAgentId: string, reading: Reading): AsyncIterable<TroupeEvent>;
  /** Called when another process may have written; the returned function ends it. */
  onForeignWrite(listener: () => void): () => void;
}

/** A turn that was opened before. */
export interface EarlierTurn {
  readonly turnId: string;
  /** Its id; rejects when no such turn was ever opened. */
  readonly given: Promise<string>;
}

/** One turn, as its caller holds it. */
export class TurnHandle implements Turn {
  readonly id: Promise<string>;
  readonly #result: Promise<TurnResult>;
  readonly #source: TurnSource;
  readonly #rootAgentId: string;
  /** Aborted, with the error that its caller is told, when the turn cannot go on: it will have no further events. */
  readonly #gone = new AbortController();
  #acceptedId: string | undefined;
  /** Whether its result was asked for: who only begins a turn waits for nothing. */
  #isResultAwaited = false;

  /** A turn that is just being opened, or one that was opened before; `onEnd` comes before its result is given. */
  constructor(source: TurnSource, agentId: string, turn: Promise<string> | EarlierTurn, onEnd?: () => Promise<void>) {
    const accepted = "turnId" in turn ? turn.given : turn;
    this.#source = source;
    this.#rootAgentId = rootOf(agentId);
    if ("turnId" in turn) this.#acceptedId = turn.turnId;
    this.id = accepted.then((turnId) => {
      this.#acceptedId = turnId;
      return turnId;
    });
    this.#result = accepted.then(async (turnId) => {
      const result = await source.end(turnId);
      await onEnd?.();
      return result;
    });
    // Whoever looks at one of them sees the error; the others must not count as unhandled.
    this.id.catch(() => undefined);
    this.#result.catch((error: unknown) => {
      if (!(error instanceof StoreUnavailableError)) this.#gone.abort(error);
    });
  }

  get result(): Promise<TurnResult> {
    if (!this.#isResultAwaited) this.#source.waiting.until(this.ended);
    this.#isResultAwaited = true;
    return this.ended;
  }

  /** Looked for each time that somebody asks. Its end counts however it is heard of: also where its runtime goes with it. */
  get settled(): Promise<TurnRest> {
    const rest = this.id.then((turnId) => this.#source.rest(turnId));
    const settled = Promise.race([this.ended, rest]);
    for (const one of [rest, settled]) one.catch(() => undefined);
    this.#source.waiting.until(settled);
    return settled;
  }

  /** The result, for whoever does not wait for it. */
  protected get ended(): Promise<TurnResult> {
    return this.#result;
  }

  async abort(reason = "aborted by its caller"): Promise<void> {
    await this.#source.abort(await this.id, reasonOf(reason, "turn.abort()"));
  }

  subscribe(observer: EventObserver): { unsubscribe(): void } {
    assertObserver(observer, "turn.subscribe()");
    const controller = new AbortController();
    const watcher: Exclude<EventObserver, (event: TroupeEvent) => void> =
      typeof observer === "function" ? { next: observer } : observer;
    const what = "an observer of turn.subscribe()";
    const fail = harmless(what, (failure: unknown) => watcher.error?.(failure));
    const leave = (failure: unknown): void => {
      if (!controller.signal.aborted) fail(failure);
      controller.abort();
    };
    // What it throws itself is its own `error`'s, and its last word.
    const next = harmless(what, (event: TroupeEvent) => watcher.next?.(event), watcher.error && leave);
    const complete = harmless(what, () => watcher.complete?.());
    const run = async (): Promise<void> => {
      for await (const event of this.#events(controller.signal)) next(event);
      if (!controller.signal.aborted) complete();
    };
    run().catch(fail);
    return { unsubscribe: () => controller.abort() };
  }

  [Symbol.asyncIterator](): AsyncIterator<TroupeEvent> {
    return this.#events(undefined, this.#source.waiting.begin);
  }

  /** Listens from now on, and reads from the journal what came before. `hold` for a reader that waits for the next one. */
  #events(signal?: AbortSignal, hold?: () => () => void): AsyncGenerator<TroupeEvent, void, undefined> {
    const late = this.#acceptedId !== undefined;
    const queue: TroupeEvent[] = [];
    let arrived = createDeferred();
    const stop = this.#source.bus.listen((event) => {
      queue.push(event);
      arrived.resolve();
    }, this.#rootAgentId);
    const onAbort = (): void => arrived.resolve();
    const { closed } = this.#source;
    const endings = [signal, closed, this.#gone.signal];
    let mayHaveMoved = false;
    const stopWatching = this.#source.onForeignWrite(() => {
      mayHaveMoved = true;
      arrived.resolve();
    });
    for (const ending of endings) ending?.addEventListener("abort", onAbort, { once: true });
    const wait = async (): Promise<void> => {
      arrived = createDeferred();
      if (queue.length > 0 || endings.some((ending) => ending?.aborted)) return;
      const letGo = hold?.();
      await arrived.promise;
      letGo?.();
    };
    const hasMoved = (turnId: string): boolean => {
      const moved = mayHaveMoved && !this.#source.isLocal(turnId);
      mayHaveMoved = false;
      return moved;
    };
    const close = (): void => {
      stop();
      stopWatching();
      for (const ending of endings) ending?.removeEventListener("abort", onAbort);
    };
    return this.#read({ late, queue, wait, hasMoved, close, signal, hold });
  }

  async *#read(feed: Feed): AsyncGenerator<TroupeEvent, void, undefined> {
    try {
      const turnId = await this.id;
      if (feed.late || this.#source.part.isDistributed || !this.#source.isLocal(turnId)) {
        feed.close();
        yield* this.#replay(turnId, feed);
        return;
      }
      let last: string | undefined;
      while (!feed.signal?.aborted) {
        const event = feed.queue.shift();
        last = event?.cursor ?? last;
        if (!event) {
          this.#throwIfOver();
          if (feed.hasMoved(turnId)) {
            yield* this.#replay(turnId, feed, last);
            return;
          }
          await feed.wait();
        } else if (this.#belongs(event, turnId)) {
          yield event;
          if (endsTurn(event, turnId)) return;
        }
      }
    } finally {
      feed.close();
    }
  }

  async *#replay(
    turnId: string,
    { signal, hold }: Pick<Feed, "signal" | "hold">,
    after?: string,
  ): AsyncGenerator<TroupeEvent, void, undefined> {
    const controller = new AbortController();
    const onAbort = (): void => controller.abort();
    const endings = [signal, this.#gone.signal];
    for (const ending of endings) ending?.addEventListener("abort", onAbort, { once: true });
    if (signal?.aborted) return;
    this.#gone.signal.throwIfAborted();
    try {
      const reading = { signal: controller.signal, after, hold };
      for await (const event of this.#source.replay(this.#rootAgentId, reading)) {
        if (this.#belongs(event, turnId)) yield event;
        if (endsTurn(event, turnId)) return;
      }
      if (!signal?.aborted) this.#throwIfOver();
    } finally {
      controller.abort();
      for (const ending of endings) ending?.removeEventListener("abort", onAbort);
    }
  }

  #throwIfOver(): void {
    this.#gone.signal.throwIfAborted();
    this.#source.closed.throwIfAborted();
  }

  /** The turn's own events, and those of every agent that was spawned under it. */
  #belongs(event: TroupeEvent, turnId: string): boolean {
    if (event.turnId === turnId) return true;
    for (let agentId = event.agentId; ; ) {
      const parentTurn = this.#source.parentTurnOf(agentId);
      if (parentTurn === null) return false;
      if (parentTurn === turnId) return true;
      agentId = agentOfTurn(parentTurn);
    }
  }
}

interface Feed {
  readonly late: boolean;
  readonly queue: TroupeEvent[];
  wait(): Promise<void>;
  /** Whether another process has the agent now, and the rest has to be read. */
  hasMoved(turnId: string): boolean;
  close(): void;
  readonly signal: AbortSignal | undefined;
  readonly hold: (() => () => void) | undefined;
}

function endsTurn(event: TroupeEvent, turnId: string): boolean {
  if (event.turnId !== turnId) return false;
  return event.type === "turn.completed" || event.type === "turn.stopped" || event.type === "turn.failed";
}
