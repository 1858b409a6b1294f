import { f2 } from "./faults/f2.ts";
import { f31 } from "./faults/f31.ts";
import { job } from "./faults/job.ts";
import type { ChaosScenario } from "./scenario.ts";

/** All that can be run by name, in the order of `all`. */
export const scenarios: readonly ChaosScenario[] = [f2, f31, job];
