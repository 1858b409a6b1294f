import { withProvider, runSpender } from "../spending/stage.ts";
import { type ChaosScenario, reportOf } from "../scenario.ts";

const ROUNDS = 200;
const SHORT_ROUNDS = 20;
const CHILDREN = 8;
const CALLS = 9;

/** 8 concurrent children each try three model calls under a tree limit of 9. A round is one tree. */
export const nine: ChaosScenario = {
  name: "NINE",
  title: "8 parallel children under a limit of 9 model calls: exactly 9 requests reach the provider",
  run: ({ seed, short, rounds: asked, folder }) =>
    withProvider(folder, 10, async ({ model, log }) => {
      const rounds = asked ?? (short ? SHORT_ROUNDS : ROUNDS);
      const trees = Array.from({ length: rounds }, (_, index) => ({
        agentId: `nine-${index + 1}`,
        budget: { maxTreeSteps: CALLS },
      }));
      const team = { lead: `fan:${CHILDREN}`, child: "steps:3", childBudget: {} };
      const end = await runSpender({ store: null, model, team, trees, lanes: 16 });
      const requests = Map.groupBy(log.lines(), ({ task }) => task.split("/")[0]);
      const violations = trees.flatMap(({ agentId }) => {
        const made = requests.get(agentId)?.length ?? 0;
        return made === CALLS ? [] : [`${agentId}: ${made} requests`];
      });
      if (end.stuck !== undefined) violations.push(end.stuck);
      const succeeded = end.ends.filter(({ stopReason }) => stopReason === "steps_limit").length;
      const atOnce = Math.max(0, ...log.lines().map((line) => line.atOnce));
      return reportOf(
        { name: "NINE", seed },
        { operations: rounds, succeeded, violations },
        { requests: log.lines().length, requestsATree: CALLS, atOnce },
      );
    }),
};
