import type { Command } from "commander";
import type { CliContext } from "./cli-context.ts";
import type { SchemaOptions } from "./commands/schema.ts";
import type { ExitCode } from "./failure.ts";
import * as helpTexts from "./help-texts.ts";
import { nonEmpty } from "./options.ts";

/** `schema`: JSON Schemas for editors and other programs. */
export function addSchemaCommand(program: Command, context: CliContext, done: (exitCode: ExitCode) => void): void {
  program
    .command("schema")
    .description("Print JSON Schemas: of the files that troupe reads and writes, or of the agents in a file.")
    .argument("[name]", "name of a schema, or an agent file (default: list the names)", nonEmpty)
    .option("--agent <name>", "only this agent of the file", nonEmpty)
    .option("--out <folder>", "write them as files into this folder; without a name all that are listed", nonEmpty)
    .option("--force", "overwrite files that are not earlier versions of these schemas")
    .addHelpText("after", helpTexts.schema)
    .action(async (name: string | undefined, options: SchemaOptions) => {
      const { schemaCommand } = await import("./commands/schema.ts");
      done(await schemaCommand(context, name, options));
    });
}
