import type { Command } from "commander";
import type { CliContext } from "./cli-context.ts";
import type { McpServeOptions } from "./commands/mcp-serve.ts";
import type { ExitCode } from "./failure.ts";
import * as helpTexts from "./help-texts.ts";
import { addStoreOptions, mcpOption, nonEmpty, wholeNumber } from "./options.ts";

/** `mcp serve`: agents as tools of an MCP server over standard input and output. */
export function addMcpServeCommand(program: Command, context: CliContext, done: (exitCode: ExitCode) => void): void {
  const mcp =
    program.commands.find((command) => command.name() === "mcp") ??
    program.command("mcp").description("Commands for the Model Context Protocol.").copyInheritedSettings(program);
  const serve = mcp
    .command("serve")
    .copyInheritedSettings(program)
    .helpOption("-h, --help", "show this help")
    .description("Serve the agents of files as tools of an MCP server over standard input and output.")
    .argument("<files...>", "agent files: .ts or .js that export definitions, .yaml of Teal Agents")
    .option("--actor <name>", "owner of the client's turns (default: the user of this system)", nonEmpty)
    .option(
      "--wait-seconds <number>",
      "longest wait of a call; a longer turn is collected with turn_result (default: 45)",
      wholeNumber(1, 86_400),
    )
    .option(
      "--plugins <file>",
      "module with the plugins of a .yaml file (default: custom_plugins.ts next to it)",
      nonEmpty,
    )
    .option("--catalog <file>", "catalog of the plugins (default: catalog.json next to the file)", nonEmpty)
    .addOption(mcpOption())
    .option("--drain-seconds <number>", "maximum number of seconds to stop (default: 25)", wholeNumber(1, 86_400));
  addStoreOptions(serve)
    .addHelpText("after", helpTexts.mcpServe)
    .action(async (files: string[], options: McpServeOptions) => {
      const { mcpServeCommand } = await import("./commands/mcp-serve.ts");
      done(await mcpServeCommand(context, files, options));
    });
}
