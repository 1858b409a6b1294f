import { type Clock, workingOn } from "../../base/index.ts";
import type { Stores } from "../../stores/index.ts";

/** The stores, each of whose calls is work for a clock that passes time by itself. */
export function watchedStores(stores: Stores, clock: Pick<Clock, "work">): Stores {
  if (!clock.work) return stores;
  return new Proxy(stores, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      return (...given: unknown[]): unknown => workingOn(clock, () => Reflect.apply(member, target, given));
    },
  });
}
