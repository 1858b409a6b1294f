import { readableThrown } from "../base/index.ts";
import { LeaseLostError, TurnInterruptedError } from "../errors/index.ts";
import { partsOfCall } from "../state/index.ts";
import type { Host } from "./host.ts";
import { storedErrorOf } from "./stored-error.ts";
import { debugError, sourceOf } from "./user-errors.ts";

/** The input of a turn's effect; it reads everything else through its host. */
export interface TurnEffectInput {
  readonly turnId: string;
}

export interface CallEffectInput extends TurnEffectInput {
  readonly callId: string;
}

/** The scope of an effect: a turn or its agent, or one of its calls. */
export interface EffectOwner {
  /** `null` for an effect of the agent itself. */
  readonly turnId: string | null;
  readonly callId: string | null;
}

/** Work that a machine's state requires. It starts when the state is entered; its signal is aborted when the state is left. */
export interface Effect {
  readonly name: string;
  /** Whether the state continues after the effect has ended; the effect then calls `effectOver()` of the host. */
  readonly isOutlived: boolean;
  /** Derived from the id of the actor whose state requires the effect. */
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

/** A fulfilled promise: callbacks chained to it run in the next microtask, which is cheaper than `queueMicrotask`. */
const later = Promise.resolve();

/** One shared error: states are left all the time, and creating an error would cost more than the transition. */
const stopped = new TurnInterruptedError("the state that required this effect was left");

/**
 * The running effects of one live agent.
 *
 * Invariants
 * 1. An actor has at most one effect: from entering the state that requires it until the state is left.
 * 2. The body starts in a microtask, after the transition that required it, in the async context of its turn, no matter which
 *    call caused the transition.
 * 3. An error becomes an `effect.failed` entry, unless the effect was stopped or the lease was lost.
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

  /** The scopes of effects whose work has not ended. */
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

  /** Whether the effect has ended while its state continues. */
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
 * Waits until an absolute time. The duration is computed now: setting the clock meanwhile has no effect. Rejects when the signal is
 * aborted.
 */
export async function until(host: Host, at: number, signal: AbortSignal): Promise<void> {
  const left = at - host.clock.now();
  if (left > 0) await host.clock.sleep(left, signal);
}
