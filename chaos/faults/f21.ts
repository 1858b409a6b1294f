import type { FaultPointName } from "../fault-point-names.ts";
import type { PlannedDecision } from "../people/orders.ts";
import type { PeoplePlan, PlannedLife } from "../people/round.ts";
import { runPlans } from "../people/run-plans.ts";
import type { ChaosScenario } from "../scenario.ts";
import { type SeededRandom, seededRandom } from "../../src/testing/simulation/seeded-random.ts";

const ROUNDS = 300;
const SHORT_ROUNDS = 6;
/** Share of rounds in which a process dies before its call opens a request. */
const EARLY_DEATHS = 0.2;
/** Share of rounds in which the process that resumed the decided call is killed too. */
const SECOND_DEATHS = 0.35;
const LONGEST_GAP_MS = 80;

/** Fault points between a decision and the result of its call, with the possible hits. */
const betweenPoints: readonly (readonly [FaultPointName, number])[] = [
  ["commit.before", 3],
  ["commit.after", 3],
  ["commit.acknowledged", 2],
  ["tool.intent", 2],
  ["tool.effect", 2],
  ["tool.result", 1],
];
const earlyPoints: readonly (readonly [FaultPointName, number])[] = [
  ["call.gated", 2],
  ["request.opened", 2],
  ["commit.before", 4],
  ["commit.after", 4],
];

/**
 * SIGKILL between the approval of a call and its run. The killed process decided itself, another client decided, or it was
 * dead when the decision was made. A round has at least one such kill.
 */
export const f21: ChaosScenario = {
  name: "F21",
  title: "SIGKILL between approval and run: it runs once, or at most once as declared, with the arguments approved",
  on: ["sqlite", "redis"],
  run: (options) => {
    const rounds = options.rounds ?? (options.short ? SHORT_ROUNDS : ROUNDS);
    const random = seededRandom(options.seed);
    const plans = Array.from({ length: rounds }, (_, round) => planOf(round, random));
    return runPlans("F21", options, plans, ({ deathsInBetween }) => deathsInBetween > 0);
  },
};

function planOf(round: number, random: SeededRandom): PeoplePlan {
  const decisions = [0, 1].map(
    (callIndex): PlannedDecision => ({ callIndex, verdict: random.next() < 0.75 ? "approved" : "edited" }),
  );
  const lives: PlannedLife[] = [];
  if (random.next() < EARLY_DEATHS) lives.push(lifeOf(random, "decides", "start", earlyPoints));
  const whenWaiting = random.pick(["decides", "listens", "dies"] as const);
  if (whenWaiting === "dies") {
    lives.push({ whenWaiting, fault: null, recovers: random.next() < 0.5, gapMs: 0 });
    // Everything is decided when the next process starts; it dies before it runs the call.
    if (random.next() < SECOND_DEATHS) lives.push(lifeOf(random, "decides", "start", betweenPoints));
  } else {
    lives.push(lifeOf(random, whenWaiting, "waiting", betweenPoints));
    if (random.next() < SECOND_DEATHS) lives.push(lifeOf(random, "decides", "start", betweenPoints));
  }
  return { name: `f21-${round + 1}`, decisions: random.next() < 0.5 ? decisions : decisions.toReversed(), lives };
}

function lifeOf(
  random: SeededRandom,
  whenWaiting: PlannedLife["whenWaiting"],
  from: "start" | "waiting",
  points: readonly (readonly [FaultPointName, number])[],
): PlannedLife {
  const [name, mostHits] = random.pick(points);
  const fault = { name, hit: random.between(1, mostHits), from };
  return { whenWaiting, fault, recovers: random.next() < 0.5, gapMs: random.between(0, LONGEST_GAP_MS) };
}
