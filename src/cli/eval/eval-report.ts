import { readFile } from "node:fs/promises";
import { z } from "zod";
import { describeFileError } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import { fisherTest, type Interval, permutationTest, type PassCount, wilsonInterval } from "./statistics.ts";

export const REPORT_FORMAT = "troupe.eval/1";

const countSchema = z.number().int().nonnegative();
const amountSchema = z.number().nonnegative();

const attemptSchema = z.object({
  /** The number of the repetition, from 1. */
  run: z.number().int().positive(),
  passed: z.boolean(),
  /** The messages of the test's errors; `null` if it passed. */
  failure: z.string().nullable(),
  /** Of the test, in milliseconds. */
  durationMs: amountSchema,
  /** Dollars of all its runs, judges and simulated users; `null` if a price is unknown. */
  cost: amountSchema.nullable(),
  /** Tokens of all its runs, judges and simulated users, input and output together. */
  tokens: countSchema,
  /** Steps and tool calls of its runs, without judges and simulated users. */
  steps: countSchema,
  toolCalls: countSchema,
  /** The root agents, by which runs are found in the store of `--keep`. */
  agents: z.array(z.object({ kind: z.enum(["case", "judge", "user"]), agentId: z.string(), agentName: z.string() })),
});

const caseSchema = z.object({
  /** Path of the file, from the working directory. */
  file: z.string(),
  /** The name of the test with its suites. */
  name: z.string(),
  attempts: z.array(attemptSchema).min(1),
});

/** What `troupe eval --json` writes. Later versions may add fields; a change of these has another `format`. */
export const evalReportSchema = z.object({
  format: z.literal(REPORT_FORMAT),
  /** Milliseconds since the epoch. */
  createdAt: z.number().int(),
  repeat: z.number().int().positive(),
  minPass: z.number().min(0).max(1),
  cases: z.array(caseSchema),
  /** Tests that did not run. */
  skipped: z.array(z.object({ file: z.string(), name: z.string() })),
  /** Errors outside of tests: files that do not load, rejections that no test awaits. */
  errors: z.array(z.string()),
});

export type EvalAttempt = z.infer<typeof attemptSchema>;
export type EvalReport = z.infer<typeof evalReportSchema>;
type ReportedCase = z.infer<typeof caseSchema>;

/** The figures of several attempts. */
export interface Figures extends PassCount {
  /** From 0 to 1. */
  readonly passRate: number;
  /** At 95 %. */
  readonly interval: Interval;
  /** Means of the attempts; `cost` is `null` if one is unknown. */
  readonly durationMs: number;
  readonly cost: number | null;
  readonly tokens: number;
}

export function figuresOf(attempts: readonly EvalAttempt[]): Figures {
  const runs = attempts.length;
  const passed = attempts.filter((attempt) => attempt.passed).length;
  return {
    runs,
    passed,
    passRate: runs === 0 ? 0 : passed / runs,
    interval: wilsonInterval(passed, runs),
    durationMs: meanOf(attempts.map(({ durationMs }) => durationMs)) ?? 0,
    cost: meanOf(attempts.map(({ cost }) => cost)),
    tokens: meanOf(attempts.map(({ tokens }) => tokens)) ?? 0,
  };
}

function meanOf(values: readonly (number | null)[]): number | null {
  const known = values.filter((value) => value !== null);
  if (known.length < values.length || known.length === 0) return null;
  return known.reduce((sum, value) => sum + value, 0) / known.length;
}

/** Whether some attempts passed and some failed. */
export function isFlaky({ passed, runs }: PassCount): boolean {
  return passed > 0 && passed < runs;
}

export function allAttempts({ cases }: EvalReport): EvalAttempt[] {
  return cases.flatMap(({ attempts }) => attempts);
}

/** Whether enough runs passed, and nothing failed outside of tests. */
export function isGoodEnough(report: EvalReport): boolean {
  return report.errors.length === 0 && figuresOf(allAttempts(report)).passRate >= report.minPass;
}

/** The report with the figures that readers need, as `--json` writes it. */
export function reportJson(report: EvalReport): string {
  const cases = report.cases.map(({ attempts, ...one }) => {
    const figures = figuresOf(attempts);
    return { ...one, ...figures, isFlaky: isFlaky(figures), attempts };
  });
  const summary = { ...figuresOf(allAttempts(report)), isGoodEnough: isGoodEnough(report) };
  return `${JSON.stringify({ ...report, summary, cases }, null, 2)}\n`;
}

/** Whether a text is a report, intact or not. */
export function isEvalReport(text: string): boolean {
  return z.object({ format: z.string().startsWith("troupe.eval/") }).safeParse(parsed(text)).success;
}

/** Throws `InvalidInputError` if the file cannot be read or is another one. */
export async function readReport(path: string): Promise<EvalReport> {
  let text: string;
  try {
    text = await readFile(path, "utf8");
  } catch (cause) {
    throw new InvalidInputError(describeFileError(path, cause), { cause });
  }
  const report = evalReportSchema.safeParse(parsed(text));
  if (report.success) return report.data;
  const [issue] = report.error.issues;
  const where = issue && issue.path.length > 0 ? `${issue.path.join(".")}: ` : "";
  throw new InvalidInputError(
    `${path} is not a report that \`troupe eval --json\` wrote (${REPORT_FORMAT}): ${where}${issue?.message ?? "it is invalid"}`,
  );
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

/** A figure before and now. */
export interface Change {
  readonly before: number;
  readonly now: number;
  /** Whether chance alone would make such a difference in less than 5 % of comparisons. */
  readonly isSignificant: boolean;
}

/** A case, or all cases, in both reports. */
export interface CaseChange {
  /** `undefined` for all cases together. */
  readonly key: string | undefined;
  readonly passRate: Change;
  /** `undefined` if a price is unknown. */
  readonly cost: Change | undefined;
  readonly tokens: Change;
  readonly durationMs: Change;
}

export interface Comparison {
  /** All cases together first, then each case that is in both reports. */
  readonly changes: readonly CaseChange[];
  readonly added: readonly string[];
  readonly removed: readonly string[];
}

const SIGNIFICANCE = 0.05;

export function compareReports(before: EvalReport, now: EvalReport): Comparison {
  const old = new Map(before.cases.map((one) => [caseKey(one), one.attempts]));
  const current = new Map(now.cases.map((one) => [caseKey(one), one.attempts]));
  const shared = [...current].flatMap(([key, attempts]) => {
    const earlier = old.get(key);
    return earlier ? [{ key, earlier, attempts }] : [];
  });
  const together = {
    key: undefined,
    earlier: shared.flatMap(({ earlier }) => earlier),
    attempts: shared.flatMap(({ attempts }) => attempts),
  };
  return {
    changes: (shared.length === 0 ? [] : [together, ...shared]).map(changeOf),
    added: [...current.keys()].filter((key) => !old.has(key)),
    removed: [...old.keys()].filter((key) => !current.has(key)),
  };
}

export function caseKey({ file, name }: Pick<ReportedCase, "file" | "name">): string {
  return `${file} > ${name}`;
}

interface Compared {
  readonly key: string | undefined;
  readonly earlier: readonly EvalAttempt[];
  readonly attempts: readonly EvalAttempt[];
}

function changeOf({ key, earlier, attempts }: Compared): CaseChange {
  const [before, now] = [figuresOf(earlier), figuresOf(attempts)];
  const passRate = {
    before: before.passRate,
    now: now.passRate,
    isSignificant: fisherTest(before, now) < SIGNIFICANCE,
  };
  const change = (read: (attempt: EvalAttempt) => number): Change => {
    const [first, second] = [earlier.map(read), attempts.map(read)];
    return {
      before: meanOf(first) ?? 0,
      now: meanOf(second) ?? 0,
      isSignificant: permutationTest(first, second) < SIGNIFICANCE,
    };
  };
  const isPriced = before.cost !== null && now.cost !== null;
  return {
    key,
    passRate,
    cost: isPriced ? change(({ cost }) => cost ?? 0) : undefined,
    tokens: change(({ tokens }) => tokens),
    durationMs: change(({ durationMs }) => durationMs),
  };
}
