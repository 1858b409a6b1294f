import { withProvider, runSpender } from "../spending/stage.ts";
import { type ChaosScenario, reportOf } from "../scenario.ts";
import { seededRandom } from "../../src/testing/simulation/seeded-random.ts";

const ROUNDS = 1_000;
const SHORT_ROUNDS = 40;
/** Step limit of each child. */
const CHILD_STEPS = 3;

/** Models that request a tool in every answer and a child in every third. A round is one tree. */
export const f27: ChaosScenario = {
  name: "F27",
  title: "a model that always calls a tool, with children that do the same: trees end at exactly their steps",
  run: ({ seed, short, rounds: asked, folder }) =>
    withProvider(folder, 4, async ({ model, log }) => {
      const rounds = asked ?? (short ? SHORT_ROUNDS : ROUNDS);
      const random = seededRandom(seed);
      const trees = Array.from({ length: rounds }, (_, index) => ({
        agentId: `endless-${index + 1}`,
        budget: random.next() < 0.5 ? { maxSteps: random.between(1, 12) } : { maxTreeSteps: random.between(1, 25) },
      }));
      const team = { lead: "endless-fan", child: "endless", childBudget: { maxSteps: CHILD_STEPS } };
      const end = await runSpender({ store: null, model, team, trees, lanes: 32 });
      const requests = Map.groupBy(log.lines(), ({ task }) => task.split("/")[0]);
      const violations = trees.flatMap(({ agentId, budget }) => {
        const made = requests.get(agentId) ?? [];
        const faults: string[] = [];
        const own = made.filter(({ task }) => task === agentId).length;
        const { maxSteps, maxTreeSteps } = { maxSteps: undefined, maxTreeSteps: undefined, ...budget };
        if (maxTreeSteps !== undefined && made.length !== maxTreeSteps) {
          faults.push(`${made.length} requests of ${maxTreeSteps} in the tree`);
        }
        if (maxSteps === undefined) return faults.map((text) => `${agentId}: ${text}`);
        if (own !== maxSteps) faults.push(`${own} requests of ${maxSteps} of its own`);
        const children = Map.groupBy(made, ({ task }) => task);
        children.delete(agentId);
        // The model requests a child in its first answer, its fourth, and so on. The tools of the last answer run too.
        if (children.size !== Math.ceil(maxSteps / 3)) faults.push(`${children.size} children`);
        for (const [task, calls] of children) {
          if (calls.length !== CHILD_STEPS) faults.push(`${task} made ${calls.length} requests of ${CHILD_STEPS}`);
        }
        return faults.map((text) => `${agentId}: ${text}`);
      });
      if (end.stuck !== undefined) violations.push(end.stuck);
      const succeeded = end.ends.filter(({ stopReason }) => stopReason === "steps_limit").length;
      const requestsMade = log.lines().length;
      return reportOf({ name: "F27", seed }, { operations: rounds, succeeded, violations }, { requests: requestsMade });
    }),
};
