import { InvalidArgumentError, type Command, Option } from "commander";
import type { CliContext } from "./cli-context.ts";
import type { ServeOptions } from "./commands/serve.ts";
import type { ExitCode } from "./failure.ts";
import * as helpTexts from "./help-texts.ts";
import {
  addStoreOptions,
  mcpOption,
  nonEmpty,
  onOption,
  portNumber,
  repeated,
  usualPort,
  wholeNumber,
} from "./options.ts";

/** `serve`, the HTTP server for agents. */
export function addServeCommand(program: Command, context: CliContext, done: (exitCode: ExitCode) => void): void {
  const serve = program
    .command("serve")
    .description("Serve the agents of files over HTTP until a signal.")
    .argument("<files...>", "agent files: .ts or .js that export definitions, .yaml of Teal Agents")
    .option(
      "--plugins <file>",
      "module with the plugins of a .yaml file (default: custom_plugins.ts next to it)",
      nonEmpty,
    )
    .option("--catalog <file>", "catalog of the plugins (default: catalog.json next to the file)", nonEmpty)
    .addOption(mcpOption());
  addStoreOptions(addListenOptions(serve))
    .addOption(onOption())
    .addHelpText("after", helpTexts.serve)
    .action(async (files: string[], options: ServeOptions) => {
      const { serveCommand } = await import("./commands/serve.ts");
      done(await serveCommand(context, files, options));
    });
}

/** The options for a server's address and its access. */
export function addListenOptions(command: Command): Command {
  return command
    .option("--port <number>", `port; 0: any free port (default: ${usualPort})`, portNumber)
    .option("--host <address>", "address to bind (default: 127.0.0.1, this machine only)", nonEmpty)
    .addOption(
      new Option(
        "--auth <way>",
        "who may call: clients with the token, users of Entra ID, or all programs on this machine (default: token)",
      ).choices(["token", "entra", "none"]),
    )
    .option(
      "--surfaces <list>",
      "protocols to serve, separated by commas (default: all whose packages are installed)",
      nonEmpty,
    )
    .option(
      "--chats <header>",
      "header with the chat id of front ends with OpenAI's protocol; may be repeated",
      (text: string, known: readonly string[] | undefined) => repeated(headerName(text), known),
    )
    .option("--cors <origin>", "origin of web pages that may call; may be repeated", repeated)
    .option(
      "--hosts <name>",
      "allowed value of the header Host, with its port; may be repeated (default: any; on 127.0.0.1 its own names)",
      repeated,
    )
    .option(
      "--proxies <number>",
      "number of proxies in front that append to X-Forwarded-For (default: 0)",
      wholeNumber(0, 10),
    )
    .addOption(
      new Option(
        "--metrics <who>",
        "access to /metrics: clients on this machine, all clients, or none (default: local)",
      ).choices(["local", "open", "off"]),
    )
    .option("--webhook-keys <file>", "keys that encrypt receivers' credentials, one per line", nonEmpty)
    .option(
      "--webhook-origin <origin>",
      "origin of receivers that may be without TLS and in a private network; may be repeated",
      repeated,
    )
    .option("--no-page", "disable the page at / (served only on this machine, without a proxy and without Entra ID)")
    .option("--log", "print a line of JSON on stderr for each answered request")
    .option("--drain-seconds <number>", "maximum number of seconds to stop (default: 25)", wholeNumber(1, 86_400));
}

function headerName(text: string): string {
  if (/^[\w!#$%&'*+.^`|~-]{1,100}$/.test(text)) return text;
  throw new InvalidArgumentError("Expected the name of a header, such as X-OpenWebUI-Chat-Id.");
}
