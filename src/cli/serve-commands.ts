import { type Command, InvalidArgumentError, Option } from "commander";
import type { CliContext } from "./cli-context.ts";
import type { ServeCommandOptions } from "./commands/serve.ts";
import type { ExitCode } from "./failure.ts";
import * as helpTexts from "./help-texts.ts";
import { addStoreOptions, nonEmpty, port, usualPort, wholeNumber } from "./options.ts";
import { authKinds } from "./serve/auth-of.ts";

/** `serve`, which serves agents over HTTP. */
export function addServeCommand(program: Command, context: CliContext, done: (exitCode: ExitCode) => void): void {
  const serve = program
    .command("serve")
    .description("Serve agents over HTTP: sessions, turns, streams and decisions, until a signal ends it.")
    .argument("<files...>", "agent files: .ts or .js that export definitions, or .yaml of Teal Agents");
  addStoreOptions(addListenOptions(serve))
    .addOption(new Option("--plugins <file>", "module with the plugins of YAML files").argParser(nonEmpty))
    .addOption(new Option("--catalog <file>", "catalog of the plugins of YAML files").argParser(nonEmpty))
    .addOption(
      new Option("--on <place>", "where turns run: here, or on the workers of that Redis (default: here)").choices([
        "here",
        "workers",
      ]),
    )
    .addHelpText("after", helpTexts.serve)
    .action(async (files: string[], options: ServeCommandOptions) => {
      const { serveCommand } = await import("./commands/serve.ts");
      done(await serveCommand(context, files, options));
    });
}

/** The options that say where a server listens, and to whom. */
export function addListenOptions(command: Command): Command {
  return command
    .option("--port <number>", `port to listen on; 0: any free one (default: ${usualPort})`, port)
    .option("--host <address>", "address to listen on; 0.0.0.0: all (default: 127.0.0.1, this machine only)", nonEmpty)
    .addOption(
      new Option("--auth <kind>", "who may call: token, entra, or none on this machine (default: token)").choices(
        authKinds,
      ),
    )
    .option("--cors <origins>", "origins of web pages that may call, with commas between them", origins)
    .option("--drain-seconds <number>", "most seconds for leaving (default: 25)", wholeNumber(1, 86_400));
}

/** Reads `https://a.example,https://b.example`. Throws commander's `InvalidArgumentError`. */
function origins(text: string): string[] {
  return text.split(",").map((part) => {
    const origin = part.trim();
    if (URL.canParse(origin) && new URL(origin).origin === origin) return origin;
    throw new InvalidArgumentError(`${JSON.stringify(origin)} is no origin; it takes https://app.example.com.`);
  });
}
