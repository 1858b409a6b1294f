import * as fc from "fast-check";

type ValueOf<Choice> = Choice extends fc.Arbitrary<infer Value> ? Value : never;

/** One call of an answer. A child has its own rounds. */
export type PlannedCall = "look" | "approve" | "ask" | { readonly child: readonly PlannedRound[] };
/** The calls of one answer. */
export type PlannedRound = readonly PlannedCall[];

const simple = fc.oneof(
  { weight: 3, arbitrary: fc.constant<PlannedCall>("look") },
  { weight: 2, arbitrary: fc.constantFrom<PlannedCall>("approve", "ask") },
);
const roundsOf = (call: fc.Arbitrary<PlannedCall>, rounds: number, calls: number): fc.Arbitrary<PlannedRound[]> =>
  fc.array(fc.array(call, { minLength: 1, maxLength: calls }), { minLength: 1, maxLength: rounds });
const grandchild = fc.record({ child: roundsOf(simple, 1, 2) });
const inChild = fc.oneof({ weight: 5, arbitrary: simple }, { weight: 1, arbitrary: grandchild });
const child = fc.record({ child: roundsOf(inChild, 2, 2) });
const inLead = fc.oneof({ weight: 3, arbitrary: simple }, { weight: 2, arbitrary: child });

/** The actions of an agent, the actions of others on it meanwhile, and the disturbance of its inbox. */
export const inboxPlan = fc.record({
  /** The rounds of each turn. */
  turns: fc.array(roundsOf(inLead, 2, 4), { minLength: 1, maxLength: 2 }),
  /** Whether all turns are sent at once and queued, or each after the previous one has ended. */
  atOnce: fc.boolean(),
  /** Whether requests are decided as soon as they are open, or when nothing else happens any more. */
  decidesEagerly: fc.boolean(),
  /** Polls after which the agent is paused; it is resumed once it is idle. */
  pauses: fc.array(fc.integer({ min: 1, max: 30 }), { maxLength: 2 }),
  /** Whether the last turn is aborted, instead of decided, when all its work waits for people. */
  aborts: fc.boolean(),
  /** A limit so small that calls must wait for each other's reservations. */
  isTight: fc.boolean(),
  /** Whether every agent is discarded and restored after each of its commits. */
  restores: fc.boolean(),
  /** Shares of disturbed inbox reads. */
  dropped: fc.constantFrom(0, 0.3, 0.9),
  doubled: fc.constantFrom(0, 0.5),
  late: fc.constantFrom(0, 0.5),
  reordered: fc.boolean(),
  seed: fc.integer({ min: 1, max: 2 ** 31 }),
});
export type InboxPlan = ValueOf<typeof inboxPlan>;
