import { type Command, Option } from "commander";
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
        "who may call: whoever has the token, users of Entra ID, or everybody on this machine (default: token)",
      ).choices(["token", "entra", "none"]),
    )
    .option(
      "--cors <origin>",
      "origin of pages that may call; may be repeated",
      (origin: string, known: readonly string[] | undefined) => [...(known ?? []), nonEmpty(origin)],
    )
    .option("--drain-seconds <number>", "most seconds for leaving (default: 25)", wholeNumber(1, 86_400));
}
