import { existsSync, globSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { extname, join, relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { stripVTControlCharacters } from "node:util";
import type { TestCase, TestModule } from "vitest/node";
import { EVAL_NOT_RUN, evalVariables, readEvalSpending, type Redactor } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import { type SignalTiming, watchLeaving } from "../job/interrupts.ts";
import { oneLine, printable } from "../view/terminal-text.ts";
import { type EvalAttempt, type EvalReport, REPORT_FORMAT } from "./eval-report.ts";
import { costText } from "./report-files.ts";

const endings = [".ts", ".mts", ".js", ".mjs"];

/** The eval files of a command line: each file, and those named `*.eval.ts` in each folder. Throws `InvalidInputError`. */
export function evalFiles(words: readonly string[], directory: string): readonly string[] {
  const files = words.flatMap((word) => {
    const path = resolve(directory, word);
    if (!existsSync(path))
      throw new InvalidInputError(`there is no file or folder ${word}; give an eval file, or a folder with *.eval.ts`);
    if (!statSync(path).isDirectory()) {
      if (endings.includes(extname(path))) return [path];
      throw new InvalidInputError(`${word} is not an eval file; its extension must be one of ${endings.join(", ")}`);
    }
    const found = globSync(
      endings.map((ending) => `**/*.eval${ending}`),
      { cwd: path, exclude: ["**/node_modules"] },
    );
    if (found.length === 0)
      throw new InvalidInputError(
        `${word} has no eval file; their names end with ${endings.map((ending) => `.eval${ending}`).join(", ")}`,
      );
    return found.map((name) => join(path, name));
  });
  return [...new Set(files)].toSorted();
}

export interface EvalRun {
  readonly files: readonly string[];
  readonly directory: string;
  readonly repeat: number;
  readonly minPass: number;
  /** How many cases run at the same time. */
  readonly concurrency: number;
  /** Dollars of all runs, judges and simulated users, after which no further case starts. Default: no limit. */
  readonly maxCost: number | undefined;
  /** Path of a configuration of vitest. Default: none is read. */
  readonly config: string | undefined;
  /** Variables for the processes of the tests. */
  readonly environment: Readonly<Record<string, string>>;
  readonly redactor: Redactor;
  readonly note: (line: string) => void;
  readonly timing: SignalTiming;
}

/** The report, and whether a signal ended the run before its end. */
export interface EvalOutcome {
  readonly report: EvalReport;
  readonly isInterrupted: boolean;
}

type CaseFigures = NonNullable<ReturnType<TestCase["meta"]>["troupe"]>[number];

/** Longer tests need their own timeout: models are slow. */
const TEST_TIMEOUT_MS = 300_000;

/**
 * Runs the files with vitest, `repeat` times. After a signal to end, and once `maxCost` is spent, no further case starts, and the report has the cases
 * that have ended; a second signal ends the process. Throws `InvalidInputError` if vitest is not installed.
 */
export async function runEvals(options: EvalRun): Promise<EvalOutcome> {
  const { repeat, minPass, files, note, timing, maxCost } = options;
  const { createVitest } = await loadVitest();
  const collected = new Collected(options);
  // Vitest sets the exit code of its process when a test fails, and here the pass rate decides.
  const { exitCode } = process;
  const others = signalListeners();
  const limit = maxCost === undefined ? undefined : new CostLimit(maxCost);
  const vitest = await createVitest(testOptions(options, limit?.environment ?? {}), viteOptions());
  // Vitest ends the process at the first signal, before the report is written.
  for (const { signal, listener } of signalListeners()) {
    if (!others.some((one) => one.listener === listener)) process.off(signal, listener);
  }
  let interrupted: NodeJS.Signals | undefined;
  const stopWatching = watchLeaving(
    process,
    {
      leave(signal) {
        interrupted = signal;
        note(`${signal}: the cases that run are finished, and the report is written. A second signal ends at once.`);
        // If the run rejects, `runTestSpecifications()` rejects too.
        vitest.cancelCurrentRun("keyboard-input").catch(() => {});
      },
      leaveAtOnce: (exitCode) => process.exit(exitCode),
    },
    timing,
  );
  try {
    const [project] = vitest.projects;
    if (!project) throw new InvalidInputError("the configuration of vitest has no project");
    const specifications = files.map((file) => project.createSpecification(file));
    for (let run = 1; run <= repeat && interrupted === undefined; run += 1) {
      if (limit?.isReached === true) {
        collected.noteNotRun();
        break;
      }
      if (repeat > 1) note(`run ${run} of ${repeat}`);
      const { testModules, unhandledErrors } = await vitest.runTestSpecifications(specifications, true);
      collected.add(testModules, { run, unhandled: unhandledErrors, interrupted });
    }
    if (limit) collected.noteLimit(limit);
  } finally {
    stopWatching();
    limit?.remove();
    await vitest.close();
    process.exitCode = exitCode;
  }
  const report: EvalReport = { format: REPORT_FORMAT, createdAt: Date.now(), repeat, minPass, ...collected.built() };
  return { report, isInterrupted: interrupted !== undefined };
}

function signalListeners() {
  return (["SIGINT", "SIGTERM"] as const).flatMap((signal) =>
    process.listeners(signal).map((listener) => ({ signal, listener })),
  );
}

async function loadVitest() {
  try {
    return await import("vitest/node");
  } catch (cause) {
    throw new InvalidInputError(
      "`troupe eval` runs evals with vitest, which cannot be loaded; install it: npm i -D vitest@5",
      { cause },
    );
  }
}

function testOptions(
  { directory, config, concurrency, environment, note, redactor }: EvalRun,
  limits: Readonly<Record<string, string>>,
) {
  return {
    root: directory,
    config: config ?? (false as const),
    watch: false,
    // Each file gets a process, so that nothing of one repetition is left for the next.
    pool: "forks" as const,
    isolate: true,
    fileParallelism: false,
    maxConcurrency: concurrency,
    sequence: { concurrent: concurrency > 1 },
    retry: 0,
    ...(config === undefined ? { testTimeout: TEST_TIMEOUT_MS } : {}),
    setupFiles: [ownModule("testing/matchers")],
    env: { ...environment, ...limits },
    execArgv: isSource ? ["--conditions=troupe-source"] : [],
    server: { deps: { external: isSource ? [/\/src\/.*\.ts$/] : [] } },
    coverage: { enabled: false },
    reporters: [
      {
        onTestCaseResult(test: TestCase) {
          const { state } = test.result();
          if (state === "skipped" || isNotRun(test)) return;
          const ms = Math.round(test.diagnostic()?.duration ?? 0);
          note(`${state === "passed" ? "pass" : "FAIL"}  ${oneLine(redactor.text(test.fullName))}  ${ms} ms`);
        },
        onUserConsoleLog({ content }: { readonly content: string }) {
          note(printable(redactor.text(content.trimEnd())));
        },
      },
    ],
  };
}

/** In a clone, eval files get the sources of `troupe`. */
function viteOptions() {
  return isSource ? { ssr: { resolve: { conditions: ["troupe-source", "node", "development|production"] } } } : {};
}

const isSource = import.meta.url.endsWith(".ts");

/** The file of an entry of this package, from `src/cli/eval` or `dist/chunks`. */
function ownModule(name: string): string {
  return fileURLToPath(new URL(isSource ? `../../${name}.ts` : `../${name}.js`, import.meta.url));
}

/** The limit of `--max-cost`, and the file in which the processes of the cases write what they have spent. */
class CostLimit {
  readonly environment: Readonly<Record<string, string>>;
  readonly #max: number;
  readonly #folder = mkdtempSync(join(tmpdir(), "troupe-eval-"));
  readonly #file = join(this.#folder, "spending.jsonl");

  constructor(max: number) {
    this.#max = max;
    writeFileSync(this.#file, "");
    this.environment = { [evalVariables.spending]: this.#file, [evalVariables.maxCost]: String(max) };
  }

  get isReached(): boolean {
    const { dollars, unknown } = readEvalSpending(this.#file);
    return unknown !== undefined || dollars >= this.#max;
  }

  /** Why no further case has started. */
  get reason(): string {
    const { dollars, unknown } = readEvalSpending(this.#file);
    if (unknown !== undefined) {
      return `--max-cost cannot be kept, because the cost of "${unknown}" is unknown; give the price of its model`;
    }
    return `--max-cost is reached: ${costText(dollars)} of ${costText(this.#max)} are spent`;
  }

  remove(): void {
    rmSync(this.#folder, { recursive: true, force: true });
  }
}

/** Whether a test did not start, because the money was spent. */
function isNotRun(test: TestCase): boolean {
  return test.result().errors?.some(({ message }) => message.includes(EVAL_NOT_RUN)) === true;
}

/** One repetition. */
interface Repetition {
  /** Its number, from 1. */
  readonly run: number;
  readonly unhandled: readonly unknown[];
  /** The signal that ended it early. */
  readonly interrupted: NodeJS.Signals | undefined;
}

/** What ran, over all repetitions. */
class Collected {
  readonly #cases = new Map<string, { file: string; name: string; attempts: EvalAttempt[] }>();
  readonly #skipped = new Map<string, { file: string; name: string }>();
  readonly #errors = new Set<string>();
  /** Whether the limit of the cost has prevented a run. */
  #isCut = false;
  readonly #directory: string;
  readonly #redactor: Redactor;
  readonly #repeat: number;

  constructor({ directory, redactor, repeat }: Pick<EvalRun, "directory" | "redactor" | "repeat">) {
    this.#directory = directory;
    this.#redactor = redactor;
    this.#repeat = repeat;
  }

  add(modules: readonly TestModule[], { run, unhandled, interrupted }: Repetition): void {
    // The signal of a terminal also ends the processes of the tests, which leaves errors and tests that have not run.
    if (interrupted !== undefined) {
      const where = this.#repeat > 1 ? ` in run ${run} of ${this.#repeat}` : "";
      this.#errors.add(`interrupted by ${interrupted}${where}; the report has the cases that ended before`);
    }
    for (const module of modules) {
      const file = relative(this.#directory, module.moduleId).replaceAll(sep, "/");
      const suites = [...module.children.allSuites()];
      for (const error of [...module.errors(), ...suites.flatMap((suite) => suite.errors())]) {
        this.#errors.add(`${file}: ${this.#words(error)}`);
      }
      const seen = new Map<string, number>();
      for (const test of module.children.allTests()) {
        const same = (seen.get(test.fullName) ?? 0) + 1;
        seen.set(test.fullName, same);
        // Tests of one name are different cases.
        if (interrupted !== undefined && !hasEnded(test)) continue;
        this.#addTest(run, file, {
          test,
          name: this.#redactor.text(same === 1 ? test.fullName : `${test.fullName} #${same}`),
        });
      }
    }
    if (interrupted === undefined) for (const error of unhandled) this.#errors.add(this.#words(error));
  }

  /** No case of a repetition, and of those after it, was run. */
  noteNotRun(): void {
    this.#isCut = true;
  }

  /** Reports the limit if it has prevented a run. */
  noteLimit({ reason }: CostLimit): void {
    if (this.#isCut) this.#errors.add(this.#redactor.text(`${reason}; the cases that had not started were not run`));
  }

  #addTest(run: number, file: string, { test, name }: { readonly test: TestCase; readonly name: string }): void {
    const key = `${file} > ${name}`;
    const { state, errors = [] } = test.result();
    const isCut = isNotRun(test);
    if (isCut) this.#isCut = true;
    if (isCut || (state !== "passed" && state !== "failed")) {
      this.#skipped.set(key, { file, name });
      return;
    }
    const known = this.#cases.get(key) ?? { file, name, attempts: [] };
    this.#cases.set(key, known);
    const failure = state === "passed" ? null : errors.map((error) => this.#words(error)).join("\n\n");
    known.attempts.push({
      run,
      passed: state === "passed",
      failure,
      durationMs: test.diagnostic()?.duration ?? 0,
      ...sumOf(test.meta().troupe ?? []),
    });
  }

  #words(error: unknown): string {
    const message =
      typeof error === "object" && error !== null && "message" in error ? String(error.message) : String(error);
    return this.#redactor.text(stripVTControlCharacters(message));
  }

  built(): Pick<EvalReport, "cases" | "skipped" | "errors"> {
    return {
      cases: [...this.#cases.values()],
      skipped: [...this.#skipped].flatMap(([key, one]) => (this.#cases.has(key) ? [] : one)),
      errors: [...this.#errors],
    };
  }
}

function hasEnded(test: TestCase): boolean {
  const { state } = test.result();
  return state === "passed" || state === "failed";
}

function sumOf(runs: readonly CaseFigures[]) {
  const cases = runs.filter(({ kind }) => kind === "case");
  const total = (list: readonly CaseFigures[], field: "tokens" | "steps" | "toolCalls"): number =>
    list.reduce((sum, one) => sum + one[field], 0);
  const costs = runs.map(({ cost }) => cost);
  return {
    cost: costs.includes(null) ? null : costs.reduce<number>((sum, cost) => sum + (cost ?? 0), 0),
    tokens: total(runs, "tokens"),
    steps: total(cases, "steps"),
    toolCalls: total(cases, "toolCalls"),
    agents: runs.map(({ kind, agentId, agentName }) => ({ kind, agentId, agentName })),
  };
}
