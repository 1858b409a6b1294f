import { stat } from "node:fs/promises";
import { describeFileError } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import type { Evals, EvalsSource, ReportedRun } from "../../inspector/index.ts";
import {
  allAttempts,
  type CaseChange,
  caseKey,
  compareReports,
  type Comparison,
  type EvalReport,
  figuresOf,
  isFlaky,
  isGoodEnough,
  readReport,
} from "./eval-report.ts";

/** Files that `troupe eval --json` wrote. */
export interface EvalFiles {
  readonly file: string;
  /** The earlier report. */
  readonly before?: string | undefined;
}

interface Loaded {
  readonly version: string;
  readonly overview: Evals;
  readonly runs: ReadonlyMap<string, readonly ReportedRun[]>;
}

/** Reports in files for the page of the inspector. A file that changes is read again. Rejects with `InvalidInputError` for an invalid file. */
export async function evalFilesSource({ file, before }: EvalFiles): Promise<EvalsSource> {
  const files = before === undefined ? [file] : [file, before];
  let loaded = await load(await versionOf(files));

  async function load(version: string): Promise<Loaded> {
    const [report, earlier] = await Promise.all([
      readReport(file),
      before === undefined ? undefined : readReport(before),
    ]);
    const runs = new Map(report.cases.map((one) => [caseKey(one), one.attempts]));
    return { version, overview: overviewOf(report, earlier), runs };
  }

  async function newest(): Promise<Loaded> {
    const version = await versionOf(files);
    if (version !== loaded.version) loaded = await load(version);
    return loaded;
  }

  return {
    overview: async () => (await newest()).overview,
    runs: async (key) => (await newest()).runs.get(key),
  };
}

/** Changes when one of the files is written. */
async function versionOf(files: readonly string[]): Promise<string> {
  const versions = files.map(async (file) => {
    try {
      const { mtimeMs, size } = await stat(file);
      return `${mtimeMs} ${size}`;
    } catch (cause) {
      throw new InvalidInputError(describeFileError(file, cause), { cause });
    }
  });
  return (await Promise.all(versions)).join("\n");
}

function overviewOf(report: EvalReport, earlier: EvalReport | undefined): Evals {
  const comparison: Comparison | undefined = earlier && compareReports(earlier, report);
  const changes = new Map(comparison?.changes.map((change) => [change.key, changesOf(change)]));
  return {
    createdAt: report.createdAt,
    minPass: report.minPass,
    isGoodEnough: isGoodEnough(report),
    all: { ...figuresOf(allAttempts(report)), changes: changes.get(undefined) ?? null },
    cases: report.cases.map(({ file, name, attempts }) => {
      const key = caseKey({ file, name });
      const figures = figuresOf(attempts);
      return { key, file, name, ...figures, isFlaky: isFlaky(figures), changes: changes.get(key) ?? null };
    }),
    skipped: report.skipped.map(caseKey),
    errors: report.errors,
    compared:
      earlier && comparison
        ? { createdAt: earlier.createdAt, added: comparison.added, removed: comparison.removed }
        : null,
  };
}

function changesOf({ passRate, cost, tokens, durationMs }: CaseChange): NonNullable<Evals["all"]["changes"]> {
  return { passRate, cost: cost ?? null, tokens, durationMs };
}
