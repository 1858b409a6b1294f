import { existsSync, mkdirSync, statSync, writeFileSync } from "node:fs";
import { dirname, resolve } from "node:path";
import { createRedactor, describeFileError, evalVariables } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import { databasePath } from "../../stores/index.ts";
import { type CliContext, commandLine } from "../cli-context.ts";
import { compareReports, isGoodEnough, readReport, reportJson } from "../eval/eval-report.ts";
import { reportLines } from "../eval/eval-lines.ts";
import { junitXml, reportHtml } from "../eval/report-files.ts";
import { evalFiles, runEvals } from "../eval/run-evals.ts";
import { type ExitCode, exitCodes } from "../failure.ts";
import { timingOf } from "../job/interrupts.ts";
import { columnsOf } from "../view/table.ts";

export interface EvalCommandOptions {
  readonly repeat: number;
  readonly concurrency: number;
  /** From 0 to 1. */
  readonly minPass: number;
  /** Dollars. */
  readonly maxCost?: number | undefined;
  readonly compare?: string | undefined;
  readonly json?: string | undefined;
  readonly junit?: string | undefined;
  readonly html?: string | undefined;
  /** SQLite file for the runs. */
  readonly keep?: string | undefined;
  readonly live?: boolean | undefined;
  /** Path of a configuration of vitest. */
  readonly config?: string | undefined;
}

/** Exit code 0: enough runs passed; 1: not so, a file failed outside of its cases, or the cost reached its limit; 2: nothing could be run; 130: a signal ended it early. */
export async function evalCommand(
  context: CliContext,
  words: readonly string[],
  options: EvalCommandOptions,
): Promise<ExitCode> {
  const { directory, environment, invocation, note, out } = context;
  const { repeat, concurrency, minPass, maxCost, compare, keep, live } = options;
  const files = evalFiles(words, directory);
  const before = compare === undefined ? undefined : await readReport(resolve(directory, compare));
  const config = options.config === undefined ? undefined : existingFile(options.config, directory);
  const kept = keep === undefined ? undefined : databasePath(resolve(directory, keep));
  // A folder that cannot be written is found before models are paid.
  const outputs = (["json", "junit", "html"] as const).flatMap((kind) => {
    const path = options[kind];
    return path === undefined ? [] : [{ kind, path: madeFolderOf(resolve(directory, path)) }];
  });
  if (kept !== undefined) madeFolderOf(kept);
  const { report, isInterrupted } = await runEvals({
    files,
    directory,
    repeat,
    minPass,
    maxCost,
    concurrency,
    config,
    environment: {
      ...(live === true ? { [evalVariables.live]: "1" } : {}),
      ...(kept === undefined ? {} : { [evalVariables.store]: kept }),
    },
    redactor: createRedactor({ environment }),
    note,
    timing: timingOf(context),
  });
  if (report.cases.length === 0 && report.errors.length === 0) {
    throw new InvalidInputError(
      `${words.join(", ")}: no case ran; write them with test() of vitest, and do not skip all of them`,
    );
  }
  const comparison = before && compareReports(before, report);
  // First the terminal: the runs are paid, and a file may fail.
  reportLines(report, comparison, columnsOf(context)).forEach(out);
  const texts = {
    json: () => reportJson(report),
    junit: () => junitXml(report),
    html: () => reportHtml(report, comparison),
  };
  const faults = outputs.flatMap(({ kind, path }) => writeFault(path, texts[kind]()) ?? []);
  const shown = [
    ...(options.json === undefined ? [] : ["--evals", options.json]),
    ...(options.json === undefined || compare === undefined ? [] : ["--compare", compare]),
    ...(keep === undefined ? [] : ["--store", keep]),
  ];
  if (shown.length > 0) {
    out(`Show the ${keep === undefined ? "report" : "runs"}: ${commandLine(invocation, "inspect", shown)}`);
  }
  const [fault] = faults;
  if (fault) throw fault;
  if (isInterrupted) return exitCodes.interrupted;
  return isGoodEnough(report) ? exitCodes.success : exitCodes.failure;
}

function existingFile(path: string, directory: string): string {
  const file = resolve(directory, path);
  if (existsSync(file)) return file;
  throw new InvalidInputError(`there is no file ${path}; give a configuration of vitest`);
}

/** Creates the folder of a file, and returns the file's path. Throws `InvalidInputError`, also if the path is a folder. */
function madeFolderOf(path: string): string {
  let isFolder: boolean;
  try {
    mkdirSync(dirname(path), { recursive: true });
    isFolder = statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;
  } catch (cause) {
    throw new InvalidInputError(describeFileError(dirname(path), cause), { cause });
  }
  if (isFolder) throw new InvalidInputError(`${path} is a folder; give the path of a file`);
  return path;
}

/** Writes a report; returns the error if that fails, so that the other reports are written. */
function writeFault(path: string, text: string): InvalidInputError | undefined {
  try {
    writeFileSync(path, text);
    return undefined;
  } catch (cause) {
    return new InvalidInputError(describeFileError(path, cause), { cause });
  }
}
