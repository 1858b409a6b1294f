import type { Command } from "commander";
import type { CliContext } from "./cli-context.ts";
import type { AuditCommandOptions } from "./commands/audit.ts";
import type { ExportOptions } from "./commands/export.ts";
import type { InspectOptions } from "./commands/inspect.ts";
import type { ExitCode } from "./failure.ts";
import * as helpTexts from "./help-texts.ts";
import { addStoreOptions, agentsOption, auditHead, nonEmpty, wholeNumber } from "./options.ts";

type Done = (exitCode: ExitCode) => void;

const namesHelp = "show only names, ids and numbers, no texts of people, models or tools";

/** `inspect`, `export` and `audit`: runs in a browser, in files, and as evidence. */
export function addInspectCommands(program: Command, context: CliContext, done: Done): void {
  const inspect = program
    .command("inspect")
    .description("Show the live and past runs of a store in a browser, one run from a file, or a report of evals.")
    .argument("[id]", "an agent's id or its prefix, or a file written by `export --json` (default: all runs)")
    .option("--port <number>", "port on 127.0.0.1 (default: any free port)", wholeNumber(0, 65_535))
    .option("--open", "open the page in the browser")
    .option("--read-only", "disable deciding, pausing and aborting on the page")
    .option("--names-only", namesHelp)
    .option("--by <name>", "name stored with decisions (default: the user of this machine)", nonEmpty)
    .option("--evals <file>", "show this report of `eval --json`; then a store is opened only if it is named", nonEmpty)
    .option("--compare <file>", "an earlier report, to show what has changed since", nonEmpty)
    .addOption(agentsOption());
  addStoreOptions(inspect)
    .addHelpText("after", helpTexts.inspect)
    .action(async (what: string | undefined, options: InspectOptions) => {
      const { inspectCommand } = await import("./commands/inspect.ts");
      done(await inspectCommand(context, what, options));
    });
  const exporting = program
    .command("export")
    .description("Write a run to a file.")
    .argument("<id>", "an agent of the run: its id or its prefix")
    .option("--json <file>", "the whole run, for `inspect`", nonEmpty)
    .option("--html <file>", "a self-contained page with the run, for any browser", nonEmpty)
    .option("--trace <file>", "turns, calls and requests in Chrome's trace format", nonEmpty)
    .option("--names-only", namesHelp)
    .option("--force", "overwrite existing files");
  addStoreOptions(exporting)
    .addHelpText("after", helpTexts.exporting)
    .action(async (id: string, options: ExportOptions) => {
      const { exportCommand } = await import("./commands/export.ts");
      done(await exportCommand(context, id, options));
    });
  const auditing = program
    .command("audit")
    .description("Verify a run: its hash chain, prompts, approvals, effects and money.")
    .argument("<run>", "an agent of the run: its id or its prefix; or a file of `audit --file` or `export --json`")
    .option("--verify", "print only the verdict and what is broken")
    .option("--head <hash>", "a head that was kept outside of the store; the run must have it", auditHead)
    .option("--earlier <file>", "an earlier audit of the run; names the first entry that differs from it", nonEmpty)
    .option("--html <file>", "write a self-contained page that verifies the run in any browser", nonEmpty)
    .option("--file <file>", "write the audit as JSON, to verify it later or elsewhere", nonEmpty)
    .option("--without-content", "remove the texts of people, models and tools; their hashes and the head stay")
    .option("--json", "print the report as JSON")
    .option("--force", "overwrite existing files");
  addStoreOptions(auditing)
    .addHelpText("after", helpTexts.audit)
    .action(async (run: string, options: AuditCommandOptions) => {
      const { auditCommand } = await import("./commands/audit.ts");
      done(await auditCommand(context, run, options));
    });
}
