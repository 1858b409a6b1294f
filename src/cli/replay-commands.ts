import { type Command, Option } from "commander";
import type { CliContext } from "./cli-context.ts";
import type { CheckUpgradeCommandOptions } from "./commands/check-upgrade.ts";
import type { EstimateCommandOptions } from "./commands/estimate.ts";
import type { ReplayCommandOptions } from "./commands/replay.ts";
import type { ExitCode } from "./failure.ts";
import * as helpTexts from "./help-texts.ts";
import { addStoreOptions, agentsOption, jsonObject, mcpOption, nonEmpty, wholeNumber } from "./options.ts";

type Done = (exitCode: ExitCode) => void;

/** `replay`, `check-upgrade` and `estimate`: recorded runs and the definitions of today. */
export function addReplayCommands(program: Command, context: CliContext, done: Done): void {
  const replaying = program
    .command("replay")
    .description("Compare a recorded run with the definitions of today; no model is called and no tool runs.")
    .argument("<run>", "an agent of the run: its id or its prefix; or a file written by `export --json`")
    .addOption(definitionsOption())
    .addOption(mcpOption())
    .addOption(hooksOption("run"))
    .option("--json", "print the result as JSON");
  addStoreOptions(replaying)
    .addHelpText("after", helpTexts.replay)
    .action(async (run: string, options: ReplayCommandOptions) => {
      const { replayCommand } = await import("./commands/replay.ts");
      done(await replayCommand(context, run, options));
    });
  const checking = program
    .command("check-upgrade")
    .description("Compare the newest runs with new definitions before they are deployed.")
    .addOption(definitionsOption())
    .addOption(mcpOption())
    .option("--last <number>", "how many of the newest runs (default: 500)", wholeNumber(1, 1_000_000))
    .addOption(hooksOption("recorded"))
    .option("--json", "print the report as JSON");
  addStoreOptions(checking)
    .addHelpText("after", helpTexts.checkUpgrade)
    .action(async (options: CheckUpgradeCommandOptions) => {
      const { checkUpgradeCommand } = await import("./commands/check-upgrade.ts");
      done(await checkUpgradeCommand(context, options));
    });
  addEstimateCommand(program, context, done);
}

function addEstimateCommand(program: Command, context: CliContext, done: Done): void {
  const command = program
    .command("estimate")
    .description("Forecast tokens, money and time of one turn from recorded ones; no model is called and no tool runs.")
    .argument("<file>", "agent file, .ts or .js, that exports the definition")
    .option(
      "--input <text>",
      "input of the turn, whose first prompt is counted; - reads it from standard input",
      nonEmpty,
    )
    .option("--agent <name>", "the agent, if the file exports several", nonEmpty)
    .option("--last <number>", "how many of the newest turns (default: 200)", wholeNumber(1, 1_000_000))
    .option("--model <name>", "the recorded tokens at the price of this model, as name or provider/name", nonEmpty)
    .addOption(priceOption())
    .addOption(mcpOption())
    .option("--json", "print the forecast as JSON");
  addStoreOptions(command)
    .addHelpText("after", helpTexts.estimate)
    .action(async (file: string, options: EstimateCommandOptions) => {
      if (options.price !== undefined && options.model === undefined) {
        command.error("error: --price is the price of another model; name it with --model");
      }
      const { estimateCommand } = await import("./commands/estimate.ts");
      done(await estimateCommand(context, file, options));
    });
}

function priceOption(): Option {
  const help = "dollars per million tokens of that model, as JSON (default: from the public list)";
  return new Option("--price <json>", help).argParser(jsonObject);
}

function definitionsOption(): Option {
  return agentsOption("agent file with the definitions of today").makeOptionMandatory();
}

function hooksOption(usual: string): Option {
  const help = `run the hooks again, or take their recorded effects (default: ${usual})`;
  return new Option("--hooks <how>", help).choices(["run", "recorded"]);
}
