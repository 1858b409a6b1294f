import { InvalidArgumentError, type Command, Option } from "commander";
import type { CliContext } from "./cli-context.ts";
import type { ServeOptions } from "./commands/serve.ts";
import type { ExitCode } from "./failure.ts";
import * as helpTexts from "./help-texts.ts";
import { addStoreOptions, nonEmpty, onOption, portNumber, usualPort, wholeNumber } from "./options.ts";

/** `serve`, which puts agents behind HTTP. */
export function addServeCommand(program: Command, context: CliContext, done: (exitCode: ExitCode) => void): void {
  const serve = program
    .command("serve")
    .description("Serve the agents of files over HTTP, until a signal ends it.")
    .argument("<files...>", "agent files: .ts or .js that export definitions, .yaml of Teal Agents")
    .option(
      "--plugins <file>",
      "module with the plugins of a .yaml file (default: custom_plugins.ts beside it)",
      nonEmpty,
    )
    .option("--catalog <file>", "catalog of the plugins (default: catalog.json beside the file)", nonEmpty);
  addStoreOptions(addListenOptions(serve))
    .addOption(onOption())
    .addHelpText("after", helpTexts.serve)
    .action(async (files: string[], options: ServeOptions) => {
      const { serveCommand } = await import("./commands/serve.ts");
      done(await serveCommand(context, files, options));
    });
}

/** The options that say where a server listens, and to whom. */
export function addListenOptions(command: Command): Command {
  return command
    .option("--port <number>", `port; 0: any free port (default: ${usualPort})`, portNumber)
    .option("--host <address>", "address of that port (default: 127.0.0.1, this machine only)", nonEmpty)
    .addOption(
      new Option(
        "--auth <way>",
        "who may call: clients with the token, users of Entra ID, or all programs on this machine (default: token)",
      ).choices(["token", "entra", "none"]),
    )
    .option("--surfaces <list>", "protocols to serve, with commas (default: all whose packages are there)", nonEmpty)
    .option(
      "--chats <header>",
      "header in which front ends of OpenAI's protocol name their chats; may be repeated",
      (text: string, known: readonly string[] | undefined) => repeated(headerName(text), known),
    )
    .option("--cors <origin>", "origin of pages that may call; may be repeated", repeated)
    .option(
      "--hosts <name>",
      "value that the header Host may have, with its port; may be repeated (default: any; on 127.0.0.1 its own names)",
      repeated,
    )
    .option("--proxies <number>", "proxies in front that add to X-Forwarded-For (default: 0)", wholeNumber(0, 10))
    .addOption(
      new Option(
        "--metrics <who>",
        "who sees /metrics: clients on this machine, all clients, or none (default: local)",
      ).choices(["local", "open", "off"]),
    )
    .option("--webhook-keys <file>", "keys that encrypt what receivers are sent, one a line", nonEmpty)
    .option(
      "--webhook-origin <origin>",
      "receiver that may be without TLS and in a private network; may be repeated",
      repeated,
    )
    .option("--no-page", "no page at / (it is there only on this machine, without a proxy and without Entra ID)")
    .option("--log", "print a line of JSON on stderr for each answered request")
    .option("--drain-seconds <number>", "most seconds for leaving (default: 25)", wholeNumber(1, 86_400));
}

function headerName(text: string): string {
  if (/^[\w!#$%&'*+.^`|~-]{1,100}$/.test(text)) return text;
  throw new InvalidArgumentError("A name of a header, as X-OpenWebUI-Chat-Id.");
}

function repeated(text: string, known: readonly string[] | undefined): readonly string[] {
  return [...(known ?? []), nonEmpty(text)];
}
