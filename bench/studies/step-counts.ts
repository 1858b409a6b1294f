import { createHook } from "node:async_hooks";
import { DatabaseSync, StatementSync } from "node:sqlite";
import { Actor } from "xstate";
import { createRuntime, defineAgent } from "../../src/index.ts";
import { answerText } from "../model-answers.ts";
import { budget, lookupTool } from "../ours/agents.ts";
import { wholeAnswer } from "../ours/index.ts";
import { instantModel } from "../ours/instant-model.ts";
import { openStores, storeKinds } from "../ours/open-stores.ts";
import { instructions, userInput } from "../scenario.ts";
import { type Pair, type Sample, type Side, type Study, timed } from "../study.ts";

const counted = ["promises", "actors", "commits", "statements", "AbortControllers"] as const;
type Counted = (typeof counted)[number];
type StoreKind = (typeof storeKinds)[number];

/** A step is a model call and one call of a tool with effect class `none`. */
const FURTHER_STEPS = 10;
const TURNS = 4;

/** Counts that do not depend on the machine or its load; they are the same in every run. */
export const stepCounts: Study = {
  name: "step-counts",
  title: "what is made for each further step of a turn, against a whole turn of one model call",
  unit: "per step",
  plan: () => ({ warmUps: 1, rounds: 3 }),
  pairs: async () => storeKinds.flatMap((stores) => counted.flatMap((what) => pairsOf(stores, what))),
};

function pairsOf(stores: StoreKind, what: Counted): Pair[] {
  if (what === "statements" && stores === "memory") return [];
  return [{ stores, variant: what, ours: sideOf(stores, what, "further step"), bare: sideOf(stores, what, "turn") }];
}

function sideOf(kind: StoreKind, what: Counted, unit: "further step" | "turn"): Side {
  return {
    name: `${what} of a ${unit}, ${kind}`,
    prepare: async () => {
      const [short, long] = [await turnsOf(kind, 1), await turnsOf(kind, 1 + FURTHER_STEPS)];
      const sample = async (): Promise<Sample> => {
        const one = await short.count(what);
        if (unit === "turn") return one;
        const more = await long.count(what);
        return {
          value: (more.value - one.value) / FURTHER_STEPS,
          processorMs: (more.processorMs - one.processorMs) / FURTHER_STEPS,
        };
      };
      const close = async (): Promise<void> => {
        await short.close();
        await long.close();
      };
      return { sample, close };
    },
  };
}

/** Turns of a number of steps, each of another, already started agent. */
async function turnsOf(kind: StoreKind, steps: number) {
  const { stores, remove } = await openStores(kind);
  const commits = { count: 0 };
  const runtime = await createRuntime({
    agents: [defineAgent({ name: "agent", model: instantModel(steps), instructions, budget, tools: [lookupTool] })],
    stores: {
      ...stores,
      commit: (...given) => {
        commits.count += 1;
        return stores.commit(...given);
      },
    },
  });
  return {
    count: async (what: Counted): Promise<Sample> => {
      const agents = await Promise.all(Array.from({ length: TURNS }, () => runtime.agent("agent")));
      for (const agent of agents) await agent.start();
      const counter = what === "commits" ? countCommits(commits) : counters[what]();
      const { processorMs } = await timed(async () => {
        for (const agent of agents) {
          const text = await wholeAnswer(agent, userInput);
          if (text !== answerText) throw new Error(`step-counts: expected the answer ${answerText}, got ${text}.`);
        }
      });
      const count = counter.end();
      await Promise.all(agents.map((agent) => agent.shutdown()));
      return { value: count / TURNS, processorMs: processorMs / TURNS };
    },
    close: async () => {
      await runtime.shutdown();
      await remove();
    },
  };
}

/** A running count. */
interface Counter {
  /** Stops counting and returns the count. */
  end(): number;
}

function countCommits(commits: { readonly count: number }): Counter {
  const before = commits.count;
  return { end: () => commits.count - before };
}

const counters: Record<Exclude<Counted, "commits">, () => Counter> = {
  promises: () => {
    let count = 0;
    const hook = createHook({
      init(_id, type) {
        if (type === "PROMISE") count += 1;
      },
    }).enable();
    return {
      end: () => {
        hook.disable();
        return count;
      },
    };
  },
  actors: () => countCalls([[Actor.prototype, ["start"]]]),
  statements: () =>
    countCalls([
      [DatabaseSync.prototype, ["exec"]],
      [StatementSync.prototype, ["run", "get", "all", "iterate"]],
    ]),
  AbortControllers: () => {
    const original = globalThis.AbortController;
    let count = 0;
    globalThis.AbortController = class extends original {
      constructor() {
        super();
        count += 1;
      }
    };
    return {
      end: () => {
        globalThis.AbortController = original;
        return count;
      },
    };
  },
};

/** Counts the calls of methods on all objects of a class. */
function countCalls(methods: readonly (readonly [prototype: object, names: readonly string[]])[]): Counter {
  let count = 0;
  const restored = methods.flatMap(([prototype, names]) =>
    names.map((name) => {
      const original = Reflect.get(prototype, name) as (...given: unknown[]) => unknown;
      Reflect.set(prototype, name, function (this: unknown, ...given: unknown[]) {
        count += 1;
        return Reflect.apply(original, this, given);
      });
      return () => Reflect.set(prototype, name, original);
    }),
  );
  return {
    end: () => {
      for (const restore of restored) restore();
      return count;
    },
  };
}
