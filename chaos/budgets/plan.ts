import * as fc from "fast-check";
import type { Limits } from "../../src/budget/index.ts";

/** One planned call of a holder. */
export interface CallPlan {
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** Whole micro-dollars for an input and an output token; `null` if the price is unknown. */
  readonly price: readonly [number, number] | null;
  readonly opensStep: boolean;
  /** Change of the prompt's tokens when the call asks again after a wait. */
  readonly change: number;
  /** The usage that the call reports: a share of its reservation, more than its reservation (F16), or none. */
  readonly fate: { readonly share: number } | "more" | "unknown";
}

export interface NodePlan {
  /** Index of the account above; null at the top. */
  readonly parent: number | null;
  readonly limits: Limits;
}

/** A tree of accounts, each held by an agent, with the calls of the holders and the order of all actions. */
export interface BudgetPlan {
  readonly nodes: readonly NodePlan[];
  /** Calls of each node's agent, sequential in each lane. An agent with two lanes asks for two calls at once. */
  readonly lanes: readonly (readonly (readonly CallPlan[])[])[];
  /** Each choice selects one of the possible next actions. When they are used up, the rest happens in a fixed order. */
  readonly choices: readonly number[];
}

/** Tight enough that calls block each other, and wide enough that most of them are granted. */
const limits: fc.Arbitrary<Limits> = fc.oneof(
  { weight: 2, arbitrary: fc.record({ maxTokens: fc.integer({ min: 1000, max: 9000 }) }) },
  { weight: 1, arbitrary: fc.record({ maxCostMicros: fc.integer({ min: 2000, max: 20_000 }) }) },
  {
    weight: 1,
    arbitrary: fc.record(
      {
        maxTokens: fc.integer({ min: 200, max: 9000 }),
        maxCostMicros: fc.integer({ min: 200, max: 20_000 }),
        maxSteps: fc.integer({ min: 0, max: 6 }),
        maxTreeSteps: fc.integer({ min: 0, max: 20 }),
      },
      { requiredKeys: [] },
    ),
  },
);

const price = fc.option(fc.tuple(fc.integer({ min: 0, max: 2 }), fc.integer({ min: 0, max: 3 })), {
  nil: null,
  freq: 50,
});

const call: fc.Arbitrary<CallPlan> = fc.record({
  promptTokens: fc.oneof(
    { weight: 6, arbitrary: fc.integer({ min: 1, max: 150 }) },
    fc.integer({ min: 150, max: 900 }),
  ),
  outputTokens: fc.oneof(fc.integer({ min: 1, max: 400 }), fc.integer({ min: 256, max: 2500 })),
  price,
  opensStep: fc.boolean(),
  change: fc.oneof({ weight: 4, arbitrary: fc.constant(0) }, fc.integer({ min: -100, max: 200 })),
  fate: fc.oneof(
    { weight: 16, arbitrary: fc.record({ share: fc.double({ min: 0, max: 0.3, noNaN: true }) }) },
    { weight: 4, arbitrary: fc.record({ share: fc.double({ min: 0, max: 1, noNaN: true }) }) },
    { weight: 1, arbitrary: fc.constant("more" as const) },
    { weight: 1, arbitrary: fc.constant("unknown" as const) },
  ),
});

const calls = fc.array(call, { minLength: 1, maxLength: 4, size: "max" });
const lanes = fc.oneof(
  { weight: 3, arbitrary: calls.map((one) => [one]) },
  fc.tuple(calls, calls).map((both) => [...both]),
);
const choices = fc.array(fc.nat({ max: 2 ** 20 }), { minLength: 20, maxLength: 90, size: "max" });

/** Eight holders under one account, half of them with an additional account in between. */
export const interleavings: fc.Arbitrary<BudgetPlan> = fc
  .record({
    top: limits,
    middle: limits,
    own: fc.array(fc.oneof({ weight: 3, arbitrary: fc.constant<Limits>({}) }, limits), { minLength: 8, maxLength: 8 }),
    lanes: fc.array(lanes, { minLength: 8, maxLength: 8 }),
    choices,
  })
  .map(({ top, middle, own, lanes: ofHolders, choices: order }) => ({
    nodes: [
      { parent: null, limits: top },
      { parent: 0, limits: middle },
      ...own.map((each, index) => ({ parent: index % 2, limits: each })),
    ],
    lanes: [[], [], ...ofHolders],
    choices: order,
  }));

/** Up to 15 accounts, up to 5 deep. Each is below an earlier one, and the agent of each makes calls. */
export const trees: fc.Arbitrary<BudgetPlan> = fc
  .record({
    nodes: fc.array(fc.tuple(fc.nat(), limits), { minLength: 1, maxLength: 15 }),
    lanes: fc.array(lanes, { minLength: 15, maxLength: 15 }),
    choices,
  })
  .map(({ nodes, lanes: ofNodes, choices: order }) => {
    const depths: number[] = [];
    const placed = nodes.map(([pick, own], index): NodePlan => {
      const above = index === 0 ? null : pick % index;
      const parent = above === null ? null : (depths[above] ?? 0) < 5 ? above : 0;
      depths.push(parent === null ? 1 : (depths[parent] ?? 0) + 1);
      return { parent, limits: own };
    });
    return { nodes: placed, lanes: ofNodes.slice(0, nodes.length), choices: order };
  });
