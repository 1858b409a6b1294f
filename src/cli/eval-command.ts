import { type Command, InvalidArgumentError } from "commander";
import { positiveNumber } from "./budget-options.ts";
import type { CliContext } from "./cli-context.ts";
import type { EvalCommandOptions } from "./commands/eval.ts";
import type { ExitCode } from "./failure.ts";
import * as helpTexts from "./help-texts.ts";
import { nonEmpty, wholeNumber } from "./options.ts";

/** `eval`: runs evals, which are tests of vitest, and reports how many passed. */
export function addEvalCommand(program: Command, context: CliContext, done: (exitCode: ExitCode) => void): void {
  program
    .command("eval")
    .description("Run evals, which are tests of vitest, and print pass rates, costs and what changed.")
    .argument("<files...>", "eval files, or folders with files named *.eval.ts")
    .option("--repeat <number>", "how often each case runs", wholeNumber(1, 1_000), 1)
    .option("--concurrency <number>", "how many cases run at the same time", wholeNumber(1, 100), 1)
    .option("--min-pass <share>", "the lowest share of runs that must pass, from 0 to 1", shareOf, 1)
    .option("--max-cost <dollars>", "start no further case once this is spent", positiveNumber)
    .option("--compare <file>", "compare with this earlier report of --json", nonEmpty)
    .option("--json <file>", "write the report as JSON", nonEmpty)
    .option("--junit <file>", "write the report as JUnit XML", nonEmpty)
    .option("--html <file>", "write the report as a page", nonEmpty)
    .option("--keep <file>", "store the runs in this SQLite file, for `inspect --store`", nonEmpty)
    .option("--live", "call models that are not recorded, although CI is set")
    .option("--config <file>", "configuration of vitest (default: none is read)", nonEmpty)
    .addHelpText("after", helpTexts.evaluating)
    .action(async (files: readonly string[], options: EvalCommandOptions) => {
      const { evalCommand } = await import("./commands/eval.ts");
      done(await evalCommand(context, files, options));
    });
}

/** Throws commander's `InvalidArgumentError`. */
function shareOf(text: string): number {
  const share = Number(text);
  if (/^\d*\.?\d+$/.test(text) && share >= 0 && share <= 1) return share;
  throw new InvalidArgumentError("Expected a number from 0 to 1, such as 0.8.");
}
