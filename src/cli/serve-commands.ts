import { type Command, Option } from "commander";
import type { CliContext } from "./cli-context.ts";
import type { ServeOptions } from "./commands/serve.ts";
import type { ExitCode } from "./failure.ts";
import * as helpTexts from "./help-texts.ts";
import { addStoreOptions, nonEmpty, onOption, portNumber } from "./options.ts";

/** `serve`, which puts agents behind HTTP. */
export function addServeCommand(program: Command, context: CliContext, done: (exitCode: ExitCode) => void): void {
  const serve = program
    .command("serve")
    .description("Serve the agents of files over HTTP, until a signal ends it.")
    .argument("<files...>", "agent files: .ts or .js that export definitions, .yaml of Teal Agents")
    .option("--port <number>", "port; 0: any free port (default: 8080)", portNumber)
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
    .option(
      "--plugins <file>",
      "module with the plugins of a .yaml file (default: custom_plugins.ts beside it)",
      nonEmpty,
    )
    .option("--catalog <file>", "catalog of the plugins (default: catalog.json beside the file)", nonEmpty);
  addStoreOptions(serve)
    .addOption(onOption())
    .addHelpText("after", helpTexts.serve)
    .action(async (files: string[], options: ServeOptions) => {
      const { serveCommand } = await import("./commands/serve.ts");
      done(await serveCommand(context, files, options));
    });
}
