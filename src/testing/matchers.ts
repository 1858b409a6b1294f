/**
 * `import "troupe/testing/matchers"` in a test file, or as one of vitest's `setupFiles`, adds matchers for the results of `runCase()` to vitest's
 * `expect`, and notes the figures of each test's runs in its `meta.troupe`, where reporters find them.
 */
import { aroundEach, expect } from "vitest";
import { addEvalSpending } from "../base/index.ts";
import { type CaseFigures, costOfRuns, withCaseLog } from "./case-log.ts";
import { type EvalMatchers, evalMatchers } from "./eval-matchers.ts";

export type { CaseFigures } from "./case-log.ts";
export type { AtMost, EvalMatchers, ExpectedToolCall, ToolCallsOptions } from "./eval-matchers.ts";

declare module "vitest" {
  // The type parameters must be those of the declaration that is extended.
  interface Matchers<R extends void | Promise<void> = void | Promise<void>, T = unknown> extends EvalMatchers<R> {}
  interface TaskMeta {
    /** The runs of the test, in their order. */
    troupe?: CaseFigures[];
  }
}

expect.extend(evalMatchers);

aroundEach(async (runTest, { task }) => {
  await withCaseLog(runTest, (log) => {
    task.meta.troupe = log;
    if (log.length > 0) addEvalSpending({ name: task.name, cost: costOfRuns(log) });
  });
});
