import * as fc from "fast-check";

type ValueOf<Choice> = Choice extends fc.Arbitrary<infer Value> ? Value : never;

/** What one call of an answer is; a child has rounds of its own. */
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

/** What an agent is to do, what others do to it meanwhile, and how its inbox is disturbed. */
export const inboxPlan = fc.record({
  /** The rounds of each turn. */
  turns: fc.array(roundsOf(inLead, 2, 4), { minLength: 1, maxLength: 2 }),
  /** All turns are sent at once and wait in line, or each when the one before has ended. */
  atOnce: fc.boolean(),
  /** Requests are decided as soon as they are open, or when nothing else moves any more. */
  decidesEagerly: fc.boolean(),
  /** Looks of the onlooker after which it holds the agent, and lets it go once it is at rest. */
  pauses: fc.array(fc.integer({ min: 1, max: 30 }), { maxLength: 2 }),
  /** The last turn is aborted when all of it waits for people, in place of their decisions. */
  aborts: fc.boolean(),
  /** So little that calls have to wait for one another's reservations. */
  isTight: fc.boolean(),
  /** Every agent is discarded and restored after each of its commits. */
  restores: fc.boolean(),
  /** Shares of what an agent reads of its inbox. */
  dropped: fc.constantFrom(0, 0.3, 0.9),
  doubled: fc.constantFrom(0, 0.5),
  late: fc.constantFrom(0, 0.5),
  reordered: fc.boolean(),
  seed: fc.integer({ min: 1, max: 2 ** 31 }),
});
export type InboxPlan = ValueOf<typeof inboxPlan>;
