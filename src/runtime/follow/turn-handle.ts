import { harmless, holdProcess } from "../../base/index.ts";
import { StoreUnavailableError, UnsupportedError } from "../../errors/index.ts";
import { type Content, type Json, rootOf, type TroupeEvent } from "../../state/index.ts";
import type { TurnContexts } from "../agent/turn-contexts.ts";
import { assertObserver, reasonOf } from "../api/turn-options.ts";
import type {
  EventObserver,
  SteerAnswer,
  SteerOptions,
  Turn,
  TurnNow,
  TurnRest,
  TurnResult,
} from "../api/turn-types.ts";
import type { SpawnTrees } from "./spawn-trees.ts";
import { type FollowSource, type Reading, TreeStream } from "./tree-stream.ts";

/** The runtime, as used by a turn's handle. `closed` is aborted with the error for waiting callers. */
export interface TurnSource extends FollowSource {
  end(turnId: string): Promise<TurnResult>;
  /** `seen`: the rest that was returned to the caller last. */
  rest(turnId: string, seen?: TurnRest): Promise<TurnRest>;
  now(turnId: string): Promise<TurnNow>;
  abort(turnId: string, reason: string): Promise<void>;
  readonly trees: Pick<SpawnTrees, "note" | "isBelow">;
  readonly contexts: Pick<TurnContexts, "of">;
  /** Whether the turn is open in this process. */
  isLocal(turnId: string): boolean;
  /** Whether agents of one tree may live in several processes. */
  readonly part: { readonly isDistributed: boolean };
  /** Keeps the process running while a caller waits. */
  readonly waiting: Pick<WaitingHold, "begin" | "until">;
}

/** A turn opened by this command, or by an earlier one with the same key. */
export interface AcceptedTurn {
  readonly turnId: string;
  readonly isReplayed: boolean;
}

/** A turn that was opened earlier. */
export interface EarlierTurn {
  readonly turnId: string;
  /** Resolves to its id; rejects if no such turn was ever opened. */
  readonly given: Promise<string>;
}

export interface TurnHandleEvents {
  /** Called with the result before it is returned. */
  readonly onEnd?: (result: TurnResult) => Promise<void>;
  /** Gives the turn another input. Default: the turn takes none. */
  readonly steer?: (turnId: string, input: Content, options?: SteerOptions) => Promise<SteerAnswer>;
}

/** A caller's handle on one turn. Its events are those of its tree, filtered, up to the turn's end. */
export class TurnHandle implements Turn {
  readonly id: Promise<string>;
  readonly isReplayed: Promise<boolean>;
  readonly #result: Promise<TurnResult>;
  readonly #source: TurnSource;
  readonly #rootAgentId: string;
  readonly #steer: TurnHandleEvents["steer"];
  /** Aborted when the turn cannot continue and has no further events; the reason is the error for the caller. */
  readonly #gone = new AbortController();
  #accepted: AcceptedTurn | undefined;
  /** Whether the caller requested the result: starting a turn alone does not keep the process alive. */
  #isResultAwaited = false;
  /** The last result of `settled`, if the turn was waiting then. */
  #rest: TurnRest | undefined;

  /** Wraps a turn that is being opened, or an earlier one. */
  constructor(
    source: TurnSource,
    agentId: string,
    turn: Promise<AcceptedTurn> | EarlierTurn,
    { onEnd, steer }: TurnHandleEvents = {},
  ) {
    this.#steer = steer;
    const isEarlier = "turnId" in turn;
    const accepted = isEarlier ? turn.given.then((turnId) => ({ turnId, isReplayed: true })) : turn;
    this.#source = source;
    this.#rootAgentId = rootOf(agentId);
    if (isEarlier) this.#accepted = { turnId: turn.turnId, isReplayed: true };
    this.id = accepted.then((known) => {
      this.#accepted = known;
      return known.turnId;
    });
    this.isReplayed = accepted.then(({ isReplayed }) => isReplayed);
    this.#result = accepted.then(async ({ turnId }) => {
      const result = await source.end(turnId);
      await onEnd?.(result);
      return result;
    });
    // A caller gets the error on the promise that it uses; the others must not count as unhandled.
    for (const one of [this.id, this.isReplayed]) one.catch(() => undefined);
    this.#result.catch((error: unknown) => {
      if (!(error instanceof StoreUnavailableError)) this.#gone.abort(error);
    });
  }

  get result(): Promise<TurnResult> {
    if (!this.#isResultAwaited) this.#source.waiting.until(this.ended);
    this.#isResultAwaited = true;
    return this.ended;
  }

  /** The turn's end is enough: the runtime may be shut down with it, before the lookup is over. */
  get settled(): Promise<TurnRest> {
    const seen = this.#rest;
    const rest = this.id.then((turnId) => this.#source.rest(turnId, seen));
    const settled = Promise.race([this.ended, rest]).then((given) => {
      this.#rest = given;
      return given;
    });
    for (const one of [rest, settled]) one.catch(() => undefined);
    this.#source.waiting.until(settled);
    return settled;
  }

  async current(): Promise<TurnNow> {
    return await this.#source.now(await this.id);
  }

  /** The result, without keeping the process alive. */
  protected get ended(): Promise<TurnResult> {
    return this.#result;
  }

  async steer(input: Content, options?: SteerOptions): Promise<SteerAnswer> {
    if (this.#steer) return await this.#steer(await this.id, input, options);
    throw new UnsupportedError("a turn of the stateless loop takes no further input; use an agent of a runtime");
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
    // An observer that throws receives its own error, and no further events.
    const next = harmless(what, (event: TroupeEvent) => watcher.next?.(event), watcher.error && leave);
    const complete = harmless(what, () => watcher.complete?.());
    const events = this.#events({ signal: controller.signal });
    const run = async (): Promise<void> => {
      for await (const event of events) next(event);
      if (!controller.signal.aborted) complete();
    };
    // The turn's context is dropped at its end, before its last events are read.
    const start = (turnId: string): Promise<void> => this.#source.contexts.of(turnId).run(run);
    this.id.then(start, run).catch(fail);
    return { unsubscribe: () => controller.abort() };
  }

  [Symbol.asyncIterator](): AsyncIterator<TroupeEvent> {
    return this.#events({ hold: this.#source.waiting.begin });
  }

  partialOutputs(): AsyncGenerator<Json, void, undefined> {
    return this.#outputsIn(this.#events({ hold: this.#source.waiting.begin }));
  }

  async *#outputsIn(events: AsyncIterable<TroupeEvent>): AsyncGenerator<Json, void, undefined> {
    const turnId = await this.id;
    for await (const event of events) if (event.type === "output.delta" && event.turnId === turnId) yield event.output;
  }

  /** Listens from this call on. */
  #events(reading: Pick<Reading, "signal" | "hold">): AsyncGenerator<TroupeEvent, void, undefined> {
    const { isDistributed } = this.#source.part;
    // Past events of an earlier turn are read from the journal.
    const isLocal = (): boolean => this.#accepted?.isReplayed === false && this.#source.isLocal(this.#accepted.turnId);
    const isNew = this.#accepted === undefined && !isDistributed;
    const stream = new TreeStream(this.#source, this.#rootAgentId, {
      ...reading,
      over: this.#gone.signal,
      ...(isNew ? { isLocal } : {}),
    });
    return this.#ofTurn(stream, reading.signal);
  }

  async *#ofTurn(stream: TreeStream, signal?: AbortSignal): AsyncGenerator<TroupeEvent, void, undefined> {
    try {
      const turnId = await this.id;
      for await (const event of stream.events()) {
        if (signal?.aborted) return;
        if (event.turnId === turnId || this.#source.trees.isBelow(turnId, event.agentId)) yield event;
        if (endsTurn(event, turnId)) return;
      }
      if (signal?.aborted) return;
      this.#gone.signal.throwIfAborted();
      this.#source.closed.throwIfAborted();
    } finally {
      stream.close();
    }
  }
}

function endsTurn(event: TroupeEvent, turnId: string): boolean {
  if (event.turnId !== turnId) return false;
  return event.type === "turn.completed" || event.type === "turn.stopped" || event.type === "turn.failed";
}

/**
 * Keeps the process from exiting while a caller waits for something that can still happen.
 *
 * In shared stores it can always happen, because another process may decide a request or end the turn. With in-memory stores it
 * can only result from work in this process, which keeps the process alive itself; without such work, Node exits with code 13.
 */
export class WaitingHold {
  readonly #isShared: boolean;

  constructor(isShared: boolean) {
    this.#isShared = isShared;
  }

  /** Keeps the process alive until the returned function is called. */
  readonly begin = (): (() => void) => (this.#isShared ? holdProcess() : () => undefined);

  /** Keeps the process alive until the work has settled. */
  until(work: Promise<unknown>): void {
    const end = this.begin();
    work.then(end, end);
  }
}
