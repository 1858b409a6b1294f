import type { Command } from "commander";
import { addBudgetOptions } from "./budget-options.ts";
import type { CliContext } from "./cli-context.ts";
import type { DevOptions } from "./commands/dev.ts";
import type { ExitCode } from "./failure.ts";
import * as helpTexts from "./help-texts.ts";
import { addStoreOptions, mcpOption, nonEmpty, repeated, wholeNumber } from "./options.ts";

/** `dev`: a chat that is restarted with each change of its agent's code. */
export function addDevCommand(program: Command, context: CliContext, done: (exitCode: ExitCode) => void): void {
  const dev = program
    .command("dev")
    .description("Talk with an agent while you write it: each save reloads it, and conversation and open turn go on.")
    .argument("<file>", "agent file, .ts or .js, that exports the definition")
    .option("--agent-id <id>", "continue the conversation of this agent, or give a new one this id", nonEmpty)
    .option("--agent <name>", "the agent, if the file exports several", nonEmpty)
    .addOption(mcpOption())
    .option("--watch <file>", "another file that reloads the agent, such as a prompt; may be repeated", repeated)
    .option("--port <number>", "port of the inspector on 127.0.0.1 (default: any free port)", wholeNumber(0, 65_535))
    .option("--open", "open the inspector in the browser")
    .option("--no-inspect", "serve no inspector")
    .option(
      "--drain-seconds <number>",
      "how long a turn may take to its next safe point before a reload (default: 5)",
      wholeNumber(0, 3_600),
    );
  addStoreOptions(addBudgetOptions(dev))
    .addHelpText("after", helpTexts.dev)
    .action(async (file: string, options: DevOptions) => {
      const { devCommand } = await import("./commands/dev.ts");
      done(await devCommand(context, file, options));
    });
  // The process of the conversation, started by `dev`.
  program.command("dev-session", { hidden: true }).action(async () => {
    const { devSessionCommand } = await import("./commands/dev-session.ts");
    done(await devSessionCommand(context));
  });
}
