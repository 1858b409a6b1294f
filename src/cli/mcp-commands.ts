import { type Command, Option } from "commander";
import type { CliContext } from "./cli-context.ts";
import type { McpLoginOptions } from "./commands/mcp-login.ts";
import type { McpCallOptions } from "./commands/mcp-call.ts";
import type { McpPinsOptions } from "./commands/mcp-pins.ts";
import type { ExitCode } from "./failure.ts";
import * as helpTexts from "./help-texts.ts";
import { jsonObject, nonEmpty, wholeNumber } from "./options.ts";

type Done = (exitCode: ExitCode) => void;

/** `mcp`: servers of the Model Context Protocol, their tools, and the lock file with their definitions. */
export function addMcpCommands(program: Command, context: CliContext, done: Done): void {
  const mcp = program
    .command("mcp")
    .description("Show, pin, check and call the tools of MCP servers, and log in to servers.")
    .usage("<command> [options]")
    .helpCommand(false)
    .addHelpText("after", helpTexts.mcp);
  const list = mcp
    .command("list")
    .description("List the tools of the servers: effect, approval, and whether they are pinned.");
  addConfigOptions(list)
    .option("--json", "print every server as a line of JSON")
    .addHelpText("after", helpTexts.mcpList)
    .action(async (options: McpPinsOptions) => {
      const { mcpListCommand } = await import("./commands/mcp-pins.ts");
      done(await mcpListCommand(context, options));
    });
  const pin = mcp
    .command("pin")
    .description("Show how the servers' definitions differ from the lock file, and write them to it.")
    .argument("[servers...]", "names of servers (default: all)");
  addConfigOptions(pin)
    .option("--json", "print every server as a line of JSON")
    .addHelpText("after", helpTexts.mcpPin)
    .action(async (servers: string[], options: McpPinsOptions) => {
      const { mcpPinCommand } = await import("./commands/mcp-pins.ts");
      done(await mcpPinCommand(context, servers, options));
    });
  const check = mcp
    .command("check")
    .description("Compare the servers' definitions with the lock file; exit code 1 if they differ.")
    .argument("[servers...]", "names of servers (default: all)");
  addConfigOptions(check)
    .option("--json", "print every server as a line of JSON")
    .addHelpText("after", helpTexts.mcpCheck)
    .action(async (servers: string[], options: McpPinsOptions) => {
      const { mcpCheckCommand } = await import("./commands/mcp-pins.ts");
      done(await mcpCheckCommand(context, servers, options));
    });
  const call = mcp
    .command("call")
    .description("Call a tool of a server, as an agent would.")
    .argument("<server>", "name of the server", nonEmpty)
    .argument("<tool>", "the server's name of the tool, or the name for the model", nonEmpty);
  addConfigOptions(call)
    .option("--args <json>", "the arguments as a JSON object (default: {})", jsonObject)
    .option("--yes", "approve the call")
    .option("--save <folder>", "write images, recordings and files of the result to this folder", nonEmpty)
    .option("--json", "print the result as a line of JSON")
    .addHelpText("after", helpTexts.mcpCall)
    .action(async (server: string, tool: string, options: McpCallOptions) => {
      const { mcpCallCommand } = await import("./commands/mcp-call.ts");
      done(await mcpCallCommand(context, { server, tool }, options));
    });
  const login = mcp
    .command("login")
    .description("Log in to a server by OAuth, in a browser on this machine.")
    .argument("<server>", "name of the server", nonEmpty);
  addConfigOption(login)
    .option("--wait-seconds <number>", "maximum number of seconds for the login (default: 300)", wholeNumber(1, 86_400))
    .addHelpText("after", helpTexts.mcpLogin)
    .action(async (server: string, options: McpLoginOptions) => {
      const { mcpLoginCommand } = await import("./commands/mcp-login.ts");
      done(await mcpLoginCommand(context, server, options));
    });
  const logout = mcp
    .command("logout")
    .description("Forget the login to a server.")
    .argument("<server>", "name of the server", nonEmpty);
  addConfigOption(logout)
    .addHelpText("after", helpTexts.mcpLogin)
    .action(async (server: string, options: Pick<McpLoginOptions, "config">) => {
      const { mcpLogoutCommand } = await import("./commands/mcp-login.ts");
      done(await mcpLogoutCommand(context, server, options));
    });
  // Commander inherits settings to commands only on request.
  for (const command of mcp.commands) command.copyInheritedSettings(program).helpOption("-h, --help", "show this help");
}

/** The file with the servers. */
function addConfigOption(command: Command): Command {
  return command.addOption(
    new Option("--config <file>", "file with the servers, as editors have it (default: mcp.json)").argParser(nonEmpty),
  );
}

/** The file with the servers, and the lock file. */
function addConfigOptions(command: Command): Command {
  return addConfigOption(command).addOption(
    new Option("--lock <file>", "lock file with the definitions (default: mcp.lock.json next to it)").argParser(
      nonEmpty,
    ),
  );
}
