import type { Runtime, TroupeEvent, Turn } from "../../src/index.ts";
import type { ScriptedAnswer } from "../../src/testing/index.ts";

/** A gate in a test's code: it records arrivals, and the test opens it. */
export interface Gate<T> {
  /** Resolves at the n-th arrival, from 1. */
  reached(times?: number): Promise<void>;
  readonly count: number;
  /** Resolves all calls of pass(), pending and later ones, with the value. */
  open(value: T): void;
  fail(error: Error): void;
  /** To be awaited where the test blocks; with a signal an abort ends the wait. */
  pass(signal?: AbortSignal): Promise<T>;
}

export function createGate<T = void>(): Gate<T> {
  const opened = Promise.withResolvers<T>();
  opened.promise.catch(() => undefined);
  const arrivals: PromiseWithResolvers<void>[] = [];
  let count = 0;
  const arrival = (times: number): PromiseWithResolvers<void> => {
    const known = arrivals[times] ?? Promise.withResolvers<void>();
    arrivals[times] = known;
    return known;
  };
  return {
    reached: (times = 1) => arrival(times).promise,
    get count() {
      return count;
    },
    open: (value) => opened.resolve(value),
    fail: (error) => opened.reject(error),
    async pass(signal) {
      count += 1;
      arrival(count).resolve();
      if (!signal) return await opened.promise;
      const aborted = Promise.withResolvers<never>();
      aborted.promise.catch(() => undefined);
      const onAbort = (): void => aborted.reject(signal.reason);
      signal.addEventListener("abort", onAbort, { once: true });
      if (signal.aborted) onAbort();
      try {
        return await Promise.race([opened.promise, aborted.promise]);
      } finally {
        signal.removeEventListener("abort", onAbort);
      }
    },
  };
}

export type AskedCall = string | { readonly name: string; readonly arguments?: object };

/** An answer that calls tools. */
export function calling(...calls: AskedCall[]): ScriptedAnswer {
  return { toolCalls: calls.map((call) => (typeof call === "string" ? { name: call } : call)) };
}

/** All events of a turn, to its end. */
export async function eventsOfTurn(turn: Turn): Promise<TroupeEvent[]> {
  const events: TroupeEvent[] = [];
  for await (const event of turn) events.push(event);
  return events;
}

/** The next matching event of this process. Listens from the call on. */
export function nextEvent(runtime: Runtime, fits: (event: TroupeEvent) => boolean): Promise<TroupeEvent> {
  const found = Promise.withResolvers<TroupeEvent>();
  const subscription = runtime.subscribe((event) => {
    if (fits(event)) found.resolve(event);
  });
  return found.promise.finally(() => subscription.unsubscribe());
}

export function typesOf(events: readonly TroupeEvent[]): string[] {
  return events.map(({ type }) => type);
}
