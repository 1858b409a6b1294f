import { createRuntime, defineAgent, memoryStores, type Stores } from "../../src/index.ts";
import { createFakeClock, scriptedModel } from "../../src/testing/index.ts";
import { loopTurns } from "./journal-probes.ts";
import { ReachedStores } from "./reached-stores.ts";
import type { DaysDeployment, DaysProcess } from "./schedule-days.ts";

interface Death {
  readonly method: string;
  readonly when: "before" | "after";
}

/** The points at which a process dies: before and after each write of a run. */
const deaths: readonly Death[] = ["createAgent", "commit", "openTurn", "putSchedule"].flatMap((method) =>
  (["before", "after"] as const).map((when) => ({ method, when })),
);

/** Processes that are runtimes in this process, over one memory. A dead one gets no answer of its stores, and its clock stands still. */
export function memoryDeployment(): DaysDeployment {
  const stores = memoryStores();
  return { stores, start: async (now, sleptMs) => await startHere(stores, now, sleptMs) };
}

async function startHere(plain: Stores, now: number, sleptMs: number): Promise<DaysProcess> {
  const clock = createFakeClock(now - sleptMs);
  clock.jump(sleptMs);
  let isAlive = true;
  let death: Death | undefined;
  const reached = new ReachedStores(
    watched(plain, (reachedPoint) => {
      if (death?.method === reachedPoint.method && death.when === reachedPoint.when) kill();
    }),
  );
  function kill(): void {
    isAlive = false;
    reached.freeze();
  }
  const desk = defineAgent({ name: "desk", model: scriptedModel(() => "done") });
  await createRuntime({ agents: [desk], stores: reached.stores, clock, leaseMs: 10_000 });
  return {
    get isAlive() {
      return isAlive;
    },
    async advance(ms, steps) {
      for (let step = 0; step < steps && isAlive; step += 1) {
        clock.advance(ms);
        await loopTurns(4);
      }
    },
    async sleep(ms) {
      clock.jump(ms);
      await loopTurns(4);
    },
    async arm(random) {
      death = deaths[Math.floor(random() * deaths.length)];
    },
    kill,
  };
}

/** The same stores; `onPoint` is called when a call has begun, and when it has been answered. */
function watched(stores: Stores, onPoint: (point: Death) => void): Stores {
  return new Proxy(stores, {
    get: (target, name) => {
      const value: unknown = Reflect.get(target, name, target);
      if (typeof value !== "function") return value;
      return (...args: unknown[]): unknown => {
        const method = String(name);
        const answer: unknown = Reflect.apply(value, target, args);
        onPoint({ method, when: "before" });
        if (!(answer instanceof Promise)) return answer;
        return answer.finally(() => onPoint({ method, when: "after" }));
      };
    },
  });
}
