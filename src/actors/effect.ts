import { type ActorSystem, fromCallback } from "xstate";
import { readableThrown } from "../base/index.ts";
import { LeaseLostError, TurnInterruptedError } from "../errors/index.ts";
import { lightCallback } from "../machines/index.ts";
import type { Entry } from "../state/index.ts";
import type { Host } from "./host.ts";
import { storedErrorOf } from "./stored-error.ts";
import { debugError, sourceOf } from "./user-errors.ts";

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

/** Fulfilled: what is chained to it runs in the next microtask, at a lower price than with `queueMicrotask`. */
const later = Promise.resolve();

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
 * signal; an error becomes an `effect.failed` entry, unless the effect was aborted or the lease is lost. It runs in the async
 * context of its turn, no matter which call caused the transition.
 */
export function effectActor<Input extends EffectInput | undefined>(
  name: string,
  body: (host: Host, input: Input, signal: AbortSignal) => void | Promise<void>,
  { isOutlived = false }: EffectOptions = {},
) {
  const begin = ({ input, self, system }: { input: Input; self: object; system: object }) => {
    const host = hostOf(system as System);
    const controller = new AbortController();
    const { signal } = controller;
    let isDone = false;
    const failed = (thrown: unknown): void => {
      const error = readableThrown(thrown);
      if (signal.aborted || error instanceof LeaseLostError || input === undefined) return;
      const source = sourceOf(error);
      host.noteFailure(input.turnId, error, source);
      debugError(source ?? `turn ${input.turnId} (${name})`, error, host.redactorOf(input.turnId));
      try {
        host.append({ type: "effect.failed", turnId: input.turnId, effect: name, error: storedErrorOf(error) });
      } catch (lost) {
        if (!(lost instanceof LeaseLostError)) throw lost;
      }
    };
    const ended = (): void => {
      isDone = true;
      if (!isOutlived || signal.aborted) return;
      over.add(self);
      host.effectOver();
    };
    const perform = (): void | Promise<void> => body(host, input, signal);
    const run = (): void | Promise<void> => {
      if (signal.aborted) return undefined;
      return input === undefined ? perform() : host.inContextOf(input.turnId, perform);
    };
    void later.then(() => {
      try {
        const work = run();
        if (work === undefined) ended();
        else work.then(ended).catch(failed);
      } catch (thrown) {
        failed(thrown);
      }
    });
    return () => {
      if (!isDone) controller.abort(stopped);
    };
  };
  return lightCallback(fromCallback<Entry, Input>(begin), begin);
}

/**
 * Waits until an absolute time. How long is measured now: setting the clock meanwhile changes nothing. Rejects when the signal is
 * aborted.
 */
export async function until(host: Host, at: number, signal: AbortSignal): Promise<void> {
  const left = at - host.clock.now();
  if (left > 0) await host.clock.sleep(left, signal);
}
