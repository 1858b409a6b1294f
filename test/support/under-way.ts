import { setImmediate as loopTurn } from "node:timers/promises";
import type { Stores } from "../../src/stores/index.ts";

const underWay = new Set<Promise<unknown>>();

/** The same stores, with their pending calls recorded until they are answered. */
export function noted(stores: Stores): Stores {
  return new Proxy(stores, {
    get: (target, name: keyof Stores) => {
      const member: unknown = target[name];
      if (typeof member !== "function") return member;
      return (...given: unknown[]): unknown => {
        const answer: unknown = member.apply(target, given);
        if (answer instanceof Promise) note(answer);
        return answer;
      };
    },
  });
}

/** Resolves when all calls so far are answered: in memory immediately, over a network not. */
export async function answered(): Promise<void> {
  if (underWay.size > 0) await Promise.allSettled(underWay);
}

function note(answer: Promise<unknown>): void {
  underWay.add(answer);
  const forget = (): void => {
    underWay.delete(answer);
  };
  answer.then(forget, forget);
}

/**
 * Stores with the latency of a network: items posted during a commit arrive before it is applied. `turns`: the latency in turns of
 * the event loop.
 */
export function far(stores: Stores, turns = 6): Stores {
  const commit: Stores["commit"] = async (...given) => {
    for (let turn = 0; turn < turns; turn += 1) await loopTurn();
    return await stores.commit(...given);
  };
  return new Proxy(stores, {
    get: (target, name: keyof Stores) => {
      if (name === "commit") return commit;
      const member: unknown = target[name];
      return typeof member === "function" ? member.bind(target) : member;
    },
  });
}
