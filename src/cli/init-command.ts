import type { Command } from "commander";
import type { CliContext } from "./cli-context.ts";
import type { InitOptions } from "./commands/init.ts";
import type { ExitCode } from "./failure.ts";
import * as helpTexts from "./help-texts.ts";
import { nonEmpty } from "./options.ts";

/** `init`: writes a new project from a template. `npm create troupe` runs it too. */
export function addInitCommand(program: Command, context: CliContext, done: (exitCode: ExitCode) => void): void {
  program
    .command("init")
    .description("Write a new project: TypeScript, an agent, tests and an eval; it runs without a key.")
    .argument("[name]", "its folder, whose last part is also its name (default: my-agent)", nonEmpty)
    .option("--template <name>", "agent, team, workers, hono or next (default: agent)", nonEmpty)
    .option("--yes", "take the defaults instead of asking")
    .addHelpText("after", helpTexts.init)
    .action(async (name: string | undefined, options: InitOptions) => {
      const { initCommand } = await import("./commands/init.ts");
      done(await initCommand(context, name, options));
    });
}
