import type { FaultPointName } from "../fault-point-names.ts";
import { type PlannedDecision, verdictSchema } from "../people/orders.ts";
import type { PeoplePlan, PlannedLife } from "../people/round.ts";
import { runPlans } from "../people/run-plans.ts";
import type { ChaosScenario } from "../scenario.ts";
import { type SeededRandom, seededRandom } from "../../src/testing/simulation/seeded-random.ts";

/** Rounds per order and verdicts of the two decisions. */
const ROUNDS = 12;
const SHORT_ROUNDS = 1;
/** Share of rounds in which a process that resumed the turn is killed too. */
const SECOND_DEATHS = 0.5;
const LONGEST_GAP_MS = 150;

const verdicts = verdictSchema.options;
/** Both orders of two decisions, with every combination of verdicts. */
const everyOrder: readonly (readonly PlannedDecision[])[] = verdicts.flatMap((first) =>
  verdicts.flatMap((second) => {
    const decisions: PlannedDecision[] = [
      { callIndex: 0, verdict: first },
      { callIndex: 1, verdict: second },
    ];
    return [decisions, decisions.toReversed()];
  }),
);

/** Fault points that such a turn passes; commits are passed everywhere. */
const passed: readonly FaultPointName[] = [
  "commit.before",
  "commit.after",
  "commit.acknowledged",
  "model.intent",
  "model.effect",
  "model.result",
  "call.gated",
  "request.opened",
  "tool.intent",
  "tool.effect",
  "tool.result",
  "turn.result",
];

/**
 * Two approvals in one turn, decided in all orders with all verdicts, while processes are killed before, between and after
 * the decisions. A round is one such turn with at least one kill.
 */
export const f22: ChaosScenario = {
  name: "F22",
  title: "two approvals in one turn, all orders, with kills: the turn never waits with everything answered",
  on: ["sqlite", "redis"],
  run: (options) => {
    const rounds = options.rounds ?? (options.short ? SHORT_ROUNDS : ROUNDS);
    const random = seededRandom(options.seed);
    const plans = everyOrder.flatMap((decisions, order) =>
      Array.from({ length: rounds }, (_, round) => planOf(`f22-${order + 1}-${round + 1}`, decisions, random)),
    );
    return runPlans("F22", options, plans, ({ deaths }) => deaths > 0);
  },
};

function planOf(name: string, decisions: readonly PlannedDecision[], random: SeededRandom): PeoplePlan {
  const lives = [lifeOf(random)];
  if (random.next() < SECOND_DEATHS) lives.push(lifeOf(random));
  return { name, decisions, lives };
}

function lifeOf(random: SeededRandom): PlannedLife {
  const whenWaiting = random.pick(["decides", "listens", "dies"] as const);
  const from = random.pick(["start", "waiting"] as const);
  const name = random.pick(passed);
  const hit = random.between(1, name.startsWith("commit.") ? 6 : 2);
  const fault = whenWaiting === "dies" ? null : { name, hit, from };
  return { whenWaiting, fault, recovers: random.next() < 0.5, gapMs: random.between(0, LONGEST_GAP_MS) };
}
