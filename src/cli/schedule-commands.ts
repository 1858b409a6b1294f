import type { Command } from "commander";
import type { CliContext } from "./cli-context.ts";
import type { AddScheduleOptions, RunNowCommandOptions, ScheduleListOptions } from "./commands/schedule.ts";
import type { ExitCode } from "./failure.ts";
import * as helpTexts from "./help-texts.ts";
import { readArgument } from "./inline/standard-input.ts";
import type { StoreOptions } from "./job/store-location.ts";
import { addPageOptions, addStoreOptions, nonEmpty } from "./options.ts";

type Done = (exitCode: ExitCode) => void;

/** `schedule`: the schedules of a store. The processes that run the agents open their turns. */
export function addScheduleCommands(program: Command, context: CliContext, done: Done): void {
  const schedule = program.command("schedule").description("List, show, add, run, pause, resume and cancel schedules.");
  schedule.addHelpText("after", helpTexts.schedule);
  const list = schedule.command("list").description("List the schedules of a store by key, with their next times.");
  addStoreOptions(addPageOptions(list, "schedules"))
    .option("--agent-id <id>", "only those that run this agent", nonEmpty)
    .option("--owner <id>", "only those of this owner", nonEmpty)
    .option("--json", "print every schedule as a line of JSON")
    .action(async (options: ScheduleListOptions) => {
      const { listSchedulesCommand } = await import("./commands/schedule.ts");
      done(await listSchedulesCommand(context, options));
    });
  const show = schedule.command("show").description("Show a schedule with its last runs.").argument("<key>");
  addStoreOptions(show)
    .option("--json", "print it as JSON")
    .action(async (key: string, options: StoreOptions & { readonly json?: boolean }) => {
      const { showScheduleCommand } = await import("./commands/schedule.ts");
      done(await showScheduleCommand(context, key, options));
    });
  const add = schedule
    .command("add")
    .description("Add a schedule, or replace the one with this key.")
    .argument("<key>", "1 to 100 characters of A-Z a-z 0-9 . _ @ -")
    .argument("<input>", "the input of each turn; - reads it from standard input", nonEmpty)
    .requiredOption("--agent <name>", "name of the agent's definition", nonEmpty)
    .option("--at <time>", "once, at this time: 2027-03-01T09:00:00Z", nonEmpty)
    .option("--every <duration>", "at this distance: 90s, 15m, 1h30m, 2d, 1w", nonEmpty)
    .option("--cron <pattern>", 'at the times of a cron pattern: "0 9 * * MON-FRI"', nonEmpty)
    .option("--timezone <name>", "for --cron, and for times without an offset (default: UTC)", nonEmpty)
    .option("--start <time>", "no run before this time", nonEmpty)
    .option("--end <time>", "no run from this time on", nonEmpty)
    .option("--agent-id <id>", "the agent of every run (default: a new one for each)", nonEmpty)
    .option("--owner <id>", "owner of the agents that it creates", nonEmpty)
    .option("--if-missed <what>", "skip, once or all (default: once)", nonEmpty)
    .option("--if-busy <what>", "queue, skip, steer or supersede (default: queue)", nonEmpty);
  addStoreOptions(add).action(async (key: string, given: string, options: AddScheduleOptions) => {
    const { addScheduleCommand } = await import("./commands/schedule.ts");
    done(await addScheduleCommand(context, key, { ...options, input: await readArgument(context, given) }));
  });
  addStoreOptions(
    schedule
      .command("run-now")
      .description("Request one run of a schedule now, besides its times.")
      .argument("<key>")
      .option("--key <key>", "an idempotency key: repeated calls with it are one run", nonEmpty),
  ).action(async (key: string, options: RunNowCommandOptions) => {
    const { runNowCommand } = await import("./commands/schedule.ts");
    done(await runNowCommand(context, key, options));
  });
  const changes = {
    pause: "Pause a schedule: it opens no turns until it is resumed.",
    resume: "Resume a paused schedule with its next time after now.",
    cancel: "Remove a schedule. Turns that it has opened continue.",
  } as const;
  for (const [name, description] of Object.entries(changes) as [keyof typeof changes, string][]) {
    addStoreOptions(schedule.command(name).description(description).argument("<key>")).action(
      async (key: string, options: StoreOptions) => {
        const { changeScheduleCommand } = await import("./commands/schedule.ts");
        done(await changeScheduleCommand(context, key, { ...options, change: name }));
      },
    );
  }
}
