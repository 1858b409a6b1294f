import { type ActorSystem, type AnyActorRef, fromCallback } from "xstate";
import { readableThrown } from "../base/index.ts";
import { LeaseLostError, TurnInterruptedError } from "../errors/index.ts";
import type { ChildOptions } from "../machines/index.ts";
import type { Entry } from "../state/index.ts";
import type { Host } from "./host.ts";
import { storedErrorOf } from "./stored-error.ts";

type System = ActorSystem<never>;
const hosts = new WeakMap<object, Host>();

/** Ties a live agent's actor system to its host. Inputs of actors are persisted, so a host cannot be one. */
export function bindHost(system: object, host: Host): void {
  hosts.set(system, host);
}

function hostOf(system: object): Host {
  const host = hosts.get(system);
  if (!host) throw new Error("an effect was started in an actor system without a host");
  return host;
}

/** One shared error: leaving a state is ordinary, and a new error would cost more than the transition. */
const stopped = new TurnInterruptedError("the state that called for this effect was left");

interface EffectInput {
  readonly turnId: string;
  readonly callId?: string;
}

/** Effects that have ended while the state that called for them goes on. */
const over = new WeakSet<object>();

/** Whether an effect has ended while its state goes on. */
export function isOver(actor: object): boolean {
  return over.has(actor);
}

interface EffectOptions {
  /** Its state goes on when it has ended: it then calls `effectOver()` of the host. */
  readonly isOutlived?: boolean;
}

/**
 * Wraps every effect. The body begins in a microtask, after the transition that called for it; leaving the state aborts its
 * signal; an error becomes an `effect.failed` entry, unless the effect was aborted or the lease is lost.
 */
export function effectActor<Input extends EffectInput | undefined>(
  name: string,
  body: (host: Host, input: Input, signal: AbortSignal) => void | Promise<void>,
  { isOutlived = false }: EffectOptions = {},
) {
  const begin: Begin<Input> = ({ input, self, system }) => {
    const host = hostOf(system as System);
    const controller = new AbortController();
    const { signal } = controller;
    let isDone = false;
    const run = async (): Promise<void> => {
      await Promise.resolve();
      if (!signal.aborted) await body(host, input, signal);
      isDone = true;
      if (!isOutlived || signal.aborted) return;
      over.add(self);
      host.effectOver();
    };
    run().catch((thrown: unknown) => {
      const error = readableThrown(thrown);
      if (signal.aborted || error instanceof LeaseLostError || input === undefined) return;
      try {
        host.append({ type: "effect.failed", turnId: input.turnId, effect: name, error: storedErrorOf(error) });
      } catch (lost) {
        if (!(lost instanceof LeaseLostError)) throw lost;
      }
    });
    return () => {
      if (!isDone) controller.abort(stopped);
    };
  };
  const light = (child: ChildOptions): AnyActorRef => new EffectRef(child, begin) as unknown as AnyActorRef;
  return Object.assign(fromCallback<Entry, Input>(begin), { light });
}

type Begin<Input> = (given: { readonly input: Input; readonly self: object; readonly system: object }) => () => void;

/**
 * An effect that runs without an actor of XState: what XState asks of a machine's child, which
 * `test/machines/xstate-inside.test.ts` holds, and no more. One that is restored, or inspected, is an actor.
 */
class EffectRef<Input> {
  readonly id: string;
  readonly src: string;
  readonly input: Input;
  readonly system: object;
  readonly sessionId = "";
  readonly systemId = undefined;
  readonly _parent: AnyActorRef;
  readonly _syncSnapshot = false;
  /** XState's numbers: not started, running, stopped. */
  _processingStatus: 0 | 1 | 2 = 0;
  readonly #begin: Begin<Input>;
  #stop: (() => void) | undefined;

  constructor({ id, src, parent, input }: ChildOptions, begin: Begin<Input>) {
    this.id = id;
    this.src = src;
    this.input = input as Input;
    this.system = parent.system;
    this._parent = parent;
    this.#begin = begin;
  }

  start(): void {
    if (this._processingStatus !== 0) return;
    this._processingStatus = 1;
    this.#stop = this.#begin({ input: this.input, self: this, system: this.system });
  }

  _stop(): void {
    this._processingStatus = 2;
    this.#stop?.();
    this.#stop = undefined;
  }

  getSnapshot() {
    const status = this._processingStatus === 2 ? "stopped" : "active";
    return { status, output: undefined, error: undefined, input: this.input };
  }

  getPersistedSnapshot() {
    return this.getSnapshot();
  }

  /** No effect hears anything. */
  send(): void {}

  toJSON() {
    return { xstate$$type: 1, id: this.id };
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
