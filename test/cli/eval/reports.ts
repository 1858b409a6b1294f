// Reports of `troupe eval` for tests.
import type { EvalAttempt, EvalReport } from "../../../src/cli/eval/eval-report.ts";

export function attempt(run: number, passed: boolean, more: Partial<EvalAttempt> = {}): EvalAttempt {
  const agents = [{ kind: "case" as const, agentId: `case_${run}`, agentName: "desk" }];
  return {
    run,
    passed,
    failure: passed ? null : "expected 1, and it was 2",
    durationMs: 10 + run,
    cost: 0.001,
    tokens: 100 + run,
    steps: 2,
    toolCalls: 1,
    agents,
    ...more,
  };
}

export function reportOf(
  passes: Readonly<Record<string, readonly boolean[]>>,
  more: Partial<EvalReport> = {},
): EvalReport {
  const cases = Object.entries(passes).map(([name, list]) => ({
    file: "a.eval.ts",
    name,
    attempts: list.map((passed, index) => attempt(index + 1, passed)),
  }));
  return { format: "troupe.eval/1", createdAt: 0, repeat: 5, minPass: 0.8, cases, skipped: [], errors: [], ...more };
}

export const yes = [true, true, true, true, true];
export const no = [false, false, false, false, false];
