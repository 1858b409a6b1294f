import { readableThrown } from "../base/index.ts";
import { LeaseLostError, TurnInterruptedError } from "../errors/index.ts";
import { partsOfCall } from "../state/index.ts";
import type { Host } from "./host.ts";
import { storedErrorOf } from "./stored-error.ts";
import { debugError, sourceOf } from "./user-errors.ts";

/** What an effect of a turn is given; it reads everything else through its host. */
export interface TurnEffectInput {
  readonly turnId: string;
}

export interface CallEffectInput extends TurnEffectInput {
  readonly callId: string;
}

/** Where an effect runs: in a turn or its agent, or in one of its calls. */
export interface EffectOwner {
  /** `null` for an effect of the agent itself. */
  readonly turnId: string | null;
  readonly callId: string | null;
}

/** Work that a state of a machine calls for. It begins when the state is entered; its signal is aborted when that is left. */
export interface Effect {
  readonly name: string;
  /** Whether its state goes on when it has ended; it then calls `effectOver()` of the host. */
  readonly isOutlived: boolean;
  /** From the id of the actor whose state calls for it. */
  ownerOf(actorId: string): EffectOwner;
  perform(host: Host, actorId: string, signal: AbortSignal): void | Promise<void>;
}

const ofAgent = (): EffectOwner => ({ turnId: null, callId: null });
const ofTurn = (turnId: string): EffectOwner => ({ turnId, callId: null });
const ofCall = (callId: string): CallEffectInput => ({ turnId: partsOfCall(callId).turnId, callId });

type Options = Partial<Pick<Effect, "isOutlived">>;

export function agentEffect(
  name: string,
  body: (host: Host, signal: AbortSignal) => void | Promise<void>,
  { isOutlived = false }: Options = {},
): Effect {
  return { name, isOutlived, ownerOf: ofAgent, perform: (host, _actorId, signal) => body(host, signal) };
}

export function turnEffect(
  name: string,
  body: (host: Host, input: TurnEffectInput, signal: AbortSignal) => void | Promise<void>,
  { isOutlived = false }: Options = {},
): Effect {
  return { name, isOutlived, ownerOf: ofTurn, perform: (host, turnId, signal) => body(host, { turnId }, signal) };
}

export function callEffect(
  name: string,
  body: (host: Host, input: CallEffectInput, signal: AbortSignal) => void | Promise<void>,
  { isOutlived = false }: Options = {},
): Effect {
  return { name, isOutlived, ownerOf: ofCall, perform: (host, callId, signal) => body(host, ofCall(callId), signal) };
}

/** Fulfilled: what is chained to it runs in the next microtask, at a lower price than with `queueMicrotask`. */
const later = Promise.resolve();

/** One shared error: leaving a state is ordinary, and a new error would cost more than the transition. */
const stopped = new TurnInterruptedError("the state that called for this effect was left");

/**
 * The running effects of one live agent.
 *
 * Invariants
 * 1. An actor has at most one effect: from entering the state that calls for it until that is left.
 * 2. The body begins in a microtask, after the transition that called for it, in the async context of its turn, no matter which
 *    call caused the transition.
 * 3. An error becomes an `effect.failed` entry, unless the effect was stopped or the lease is lost.
 */
export class Effects {
  readonly #host: Host;
  readonly #running = new Map<string, RunningEffect>();

  constructor(host: Host) {
    this.#host = host;
  }

  start(actorId: string, effect: Effect): void {
    this.#running.set(actorId, new RunningEffect(this.#host, effect, actorId));
  }

  stop(actorId: string): void {
    this.#running.get(actorId)?.stop();
    this.#running.delete(actorId);
  }

  stopAll(): void {
    for (const actorId of this.#running.keys()) this.stop(actorId);
  }

  /** Where effects run whose work has not ended. */
  get places(): EffectOwner[] {
    return [...this.#running.values()].flatMap((one) => (one.isOver ? [] : [one.owner]));
  }
}

class RunningEffect {
  readonly #host: Host;
  readonly #effect: Effect;
  readonly #actorId: string;
  readonly #controller = new AbortController();
  #isDone = false;

  constructor(host: Host, effect: Effect, actorId: string) {
    this.#host = host;
    this.#effect = effect;
    this.#actorId = actorId;
    void later.then(() => this.#begin());
  }

  get owner(): EffectOwner {
    return this.#effect.ownerOf(this.#actorId);
  }

  /** Whether it has ended while its state goes on. */
  get isOver(): boolean {
    return this.#isDone && this.#effect.isOutlived;
  }

  stop(): void {
    if (!this.#isDone) this.#controller.abort(stopped);
  }

  #begin(): void {
    try {
      const work = this.#run();
      if (work === undefined) this.#end();
      else
        work.then(
          () => this.#end(),
          (error: unknown) => this.#fail(error),
        );
    } catch (thrown) {
      this.#fail(thrown);
    }
  }

  #run(): void | Promise<void> {
    const { signal } = this.#controller;
    if (signal.aborted) return undefined;
    const perform = (): void | Promise<void> => this.#effect.perform(this.#host, this.#actorId, signal);
    const { turnId } = this.owner;
    return turnId === null ? perform() : this.#host.inContextOf(turnId, perform);
  }

  #end(): void {
    this.#isDone = true;
    if (this.#effect.isOutlived && !this.#controller.signal.aborted) this.#host.effectOver();
  }

  #fail(thrown: unknown): void {
    const error = readableThrown(thrown);
    const { turnId } = this.owner;
    if (this.#controller.signal.aborted || error instanceof LeaseLostError || turnId === null) return;
    const { name } = this.#effect;
    const host = this.#host;
    const source = sourceOf(error);
    host.noteFailure(turnId, error, source);
    debugError(source ?? `turn ${turnId} (${name})`, error, host.redactorOf(turnId));
    try {
      host.append({ type: "effect.failed", turnId, effect: name, error: storedErrorOf(error) });
    } catch (lost) {
      if (!(lost instanceof LeaseLostError)) throw lost;
    }
  }
}

/**
 * Waits until an absolute time. How long is measured now: setting the clock meanwhile changes nothing. Rejects when the signal is
 * aborted.
 */
export async function until(host: Host, at: number, signal: AbortSignal): Promise<void> {
  const left = at - host.clock.now();
  if (left > 0) await host.clock.sleep(left, signal);
}
