import { type Command, InvalidArgumentError } from "commander";
import { addBudgetOptions } from "./budget-options.ts";
import type { CliContext } from "./cli-context.ts";
import type { ForkCommandOptions } from "./commands/fork.ts";
import type { ExitCode } from "./failure.ts";
import * as helpTexts from "./help-texts.ts";
import { addStoreOptions, agentsOption, nonEmpty } from "./options.ts";

/** `fork`: a recorded run continues from an earlier point as a new one. */
export function addForkCommand(program: Command, context: CliContext, done: (exitCode: ExitCode) => void): void {
  const command = program
    .command("fork")
    .description("Continue a run from an earlier point as a new one; tools with an effect outside are not run again.")
    .argument("<id>", "an agent of the run, its id or its prefix, or a file written by `export --json`")
    .requiredOption("--at <turn[:step]>", "before the model call of the step, as 2:3, or after the turn, as 2", pointOf)
    .option("--model <name>", "model for the root agent (default: that of its definition)", nonEmpty)
    .option(
      "--input <text>",
      "input after a turn; before its first step the new input; before another step an added message",
      nonEmpty,
    )
    .option("--allow <tools...>", "tools with an effect outside that really run", nonEmptyList)
    .option("--keep", "store the fork beside the run (default: it stays in memory)")
    .option("--json", "print the result as a line of JSON")
    .addOption(agentsOption("agent file that exports the definitions, if the run does not name it"));
  addStoreOptions(addBudgetOptions(command))
    .addHelpText("after", helpTexts.fork)
    .action(async (id: string, options: ForkCommandOptions) => {
      const { forkCommand } = await import("./commands/fork.ts");
      done(await forkCommand(context, id, options));
    });
}

/** Parses `2:3` or `2`. Throws commander's `InvalidArgumentError`. */
function pointOf(text: string): ForkCommandOptions["at"] {
  const match = /^([1-9]\d{0,8})(?::([1-9]\d{0,8}))?$/.exec(text);
  if (!match) throw new InvalidArgumentError("Expected a turn and a step, as 2:3, or a turn, as 2; both count from 1.");
  const [, turn, step] = match;
  return { turn: Number(turn), ...(step === undefined ? {} : { step: Number(step) }) };
}

function nonEmptyList(text: string, before: readonly string[] | undefined): readonly string[] {
  return [...(before ?? []), nonEmpty(text)];
}
