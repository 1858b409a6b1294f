import { type Command, Option } from "commander";
import type { CliContext } from "./cli-context.ts";
import type { CheckUpgradeCommandOptions } from "./commands/check-upgrade.ts";
import type { ReplayCommandOptions } from "./commands/replay.ts";
import type { ExitCode } from "./failure.ts";
import * as helpTexts from "./help-texts.ts";
import { addStoreOptions, agentsOption, mcpOption, wholeNumber } from "./options.ts";

type Done = (exitCode: ExitCode) => void;

/** `replay` and `check-upgrade`: recorded runs against the definitions of today. */
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
}

function definitionsOption(): Option {
  return agentsOption("agent file with the definitions of today").makeOptionMandatory();
}

function hooksOption(usual: string): Option {
  const help = `run the hooks again, or take their recorded effects (default: ${usual})`;
  return new Option("--hooks <how>", help).choices(["run", "recorded"]);
}
