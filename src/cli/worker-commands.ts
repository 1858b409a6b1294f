import { type Command, InvalidArgumentError, Option } from "commander";
import type { CliContext } from "./cli-context.ts";
import type { QueuesOptions } from "./commands/queues.ts";
import type { WorkerOptions } from "./commands/worker.ts";
import type { ExitCode } from "./failure.ts";
import * as helpTexts from "./help-texts.ts";
import { nonEmpty, wholeNumber, addRedisOptions, agentsOption } from "./options.ts";
import { queuePlan } from "./worker/queue-plan.ts";

type Done = (exitCode: ExitCode) => void;

/** What runs agents and tools for others, and what looks at the work that waits for it. */
export function addWorkerCommands(program: Command, context: CliContext, done: Done): void {
  const worker = program
    .command("worker")
    .description("Run the agents and the queued tools of others, from any machine that reaches the same Redis.")
    .addOption(agentsOption("agent file that exports the definitions that are worked on here"))
    .option("--ask", "work on questions of `ask`: those about --files, for --model and --max-readers")
    .addOption(new Option("--files <folder>", "with --ask: the folder, by the same path as there").argParser(nonEmpty))
    .addOption(new Option("--model <name>", "with --ask: the model, as there").argParser(nonEmpty))
    .option("--max-readers <number>", "with --ask: how many readers, as there", wholeNumber(1, 50));
  addRedisOptions(worker, "in which agents are kept and work waits")
    .option(
      "--queues <list>",
      "queues of tools with what runs at a time, and what begins at most: a,b=4,c=2@30/m; none (default: all of the definitions, one at a time)",
      queuePlan,
    )
    .option(
      "--concurrency <number>",
      "agents at work at a time; one that only waits is none (default: 50)",
      wholeNumber(1, 10_000),
    )
    .option("--drain-seconds <number>", "how long leaving may take (default: 25)", wholeNumber(1, 86_400))
    .option("--metrics-port <number>", "serve /metrics, /healthz and /readyz here; 0: any port that is free", port)
    .option(
      "--metrics-host <address>",
      "address that they are served at (default: 127.0.0.1, this machine alone)",
      nonEmpty,
    )
    .addHelpText("after", helpTexts.worker)
    .action(async (options: WorkerOptions) => {
      const { workerCommand } = await import("./commands/worker.ts");
      done(await workerCommand(context, options));
    });
  const queues = program
    .command("queues")
    .description("Show what waits in the queues of a Redis, who works on it, and what was given up and why.");
  addRedisOptions(queues, "in which work waits")
    .option("--limit <number>", "dead letters of each queue, at most (default: 20)", wholeNumber(1, 1_000))
    .option("--json", "print every queue as a line of JSON")
    .addHelpText("after", helpTexts.queues)
    .action(async (options: QueuesOptions) => {
      const { queuesCommand } = await import("./commands/queues.ts");
      done(await queuesCommand(context, options));
    });
}

function port(text: string): number {
  const value = Number(text);
  if (/^\d{1,5}$/.test(text) && value <= 65_535) return value;
  throw new InvalidArgumentError("It takes a port from 1 to 65535, or 0 for any that is free.");
}
