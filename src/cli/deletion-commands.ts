import { type Command, InvalidArgumentError } from "commander";
import type { CliContext } from "./cli-context.ts";
import type { DeleteCommandOptions } from "./commands/delete.ts";
import type { PruneCommandOptions } from "./commands/prune.ts";
import type { ExitCode } from "./failure.ts";
import * as helpTexts from "./help-texts.ts";
import { addStoreOptions, agentsOption, nonEmpty } from "./options.ts";

const agentsHelp = "agent file whose plugins and tools also forget: memories, notes, logins";

/** `delete` and `prune`: agents leave the store for good. */
export function addDeletionCommands(program: Command, context: CliContext, done: (exitCode: ExitCode) => void): void {
  const deleting = program
    .command("delete")
    .description("Delete agents for good, with their subagents and all that belongs to them.")
    .argument("[ids...]", "root agents: ids or prefixes")
    .option("--owner <owner>", "delete all agents of this owner instead", nonEmpty)
    .option("--abort", "end open turns first (default: agents with an open turn are refused)")
    .option("--forks", "also delete the forks of the agents, which begin with a copy of them")
    .addOption(agentsOption(agentsHelp))
    .option("--dry-run", "only show what would be deleted")
    .option("--yes", "delete without a question; required without a terminal")
    .option("--json", "print every deleted agent as a line of JSON");
  addStoreOptions(deleting)
    .addHelpText("after", helpTexts.deletion)
    .action(async (ids: readonly string[], options: DeleteCommandOptions) => {
      const { deleteCommand } = await import("./commands/delete.ts");
      done(await deleteCommand(context, ids, options));
    });
  const pruning = program
    .command("prune")
    .description("Delete agents in which nothing has happened for a time; never one that works or waits for a person.")
    .requiredOption("--older-than <time>", "the time since the last activity, as 90m, 12h or 30d", ageOf)
    .addOption(agentsOption(agentsHelp))
    .option("--dry-run", "only show what would be deleted")
    .option("--yes", "delete without a question; required without a terminal")
    .option("--json", "print every deleted agent as a line of JSON");
  addStoreOptions(pruning)
    .addHelpText("after", helpTexts.prune)
    .action(async (options: PruneCommandOptions) => {
      const { pruneCommand } = await import("./commands/prune.ts");
      done(await pruneCommand(context, options));
    });
}

const unitsMs = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000 } as const;

/** Parses `30d` to milliseconds. Throws commander's `InvalidArgumentError`. */
function ageOf(text: string): number {
  const [, count, unit] = /^([1-9]\d{0,6})([smhd])$/.exec(text) ?? [];
  if (count === undefined || unit === undefined) {
    throw new InvalidArgumentError("Expected a number with a unit: 45s, 90m, 12h or 30d.");
  }
  return Number(count) * unitsMs[unit as keyof typeof unitsMs];
}
