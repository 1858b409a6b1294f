import { contextScenarios } from "./context-scenarios.ts";
import { hookScenarios } from "./hook-scenarios.ts";
import { peopleScenarios } from "./people-scenarios.ts";
import type { Scenario } from "./scenario.ts";
import { treeScenarios } from "./tree-scenarios.ts";
import { turnScenarios } from "./turn-scenarios.ts";

/** Programs of real turns for tests that check journals. */
export const scenarios: readonly Scenario[] = [
  ...turnScenarios,
  ...treeScenarios,
  ...hookScenarios,
  ...peopleScenarios,
  ...contextScenarios,
];
