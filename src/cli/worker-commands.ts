import { type Command, Option } from "commander";
import type { CliContext } from "./cli-context.ts";
import type { QueuesOptions } from "./commands/queues.ts";
import type { WorkerOptions } from "./commands/worker.ts";
import type { ExitCode } from "./failure.ts";
import * as helpTexts from "./help-texts.ts";
import { addRedisOptions, agentsOption, nonEmpty, portNumber, wholeNumber } from "./options.ts";
import { queuePlan } from "./worker/queue-plan.ts";

type Done = (exitCode: ExitCode) => void;

/** `worker`, which runs agents and tools for other processes, and `queues`, which shows their work. */
export function addWorkerCommands(program: Command, context: CliContext, done: Done): void {
  const worker = program
    .command("worker")
    .description("Run agents and queued tools for other processes, on any machine that reaches the same Redis.")
    .addOption(agentsOption("agent file that exports the definitions to work on"))
    .option("--ask", "work on questions of `ask`: those about --files, for --model and --max-readers")
    .addOption(new Option("--files <folder>", "with --ask: the folder, by the same path as there").argParser(nonEmpty))
    .addOption(new Option("--model <name>", "with --ask: the model, as there").argParser(nonEmpty))
    .option("--max-readers <number>", "with --ask: how many readers, as there", wholeNumber(1, 50));
  addRedisOptions(worker, "in which agents are kept and work waits")
    .option(
      "--queues <list>",
      "tool queues with concurrency and rate: a,b=4,c=2@30/m; or none (default: all of the definitions, one job at a time)",
      queuePlan,
    )
    .option(
      "--concurrency <number>",
      "most agents at work at a time; waiting ones do not count (default: 50)",
      wholeNumber(1, 10_000),
    )
    .option("--drain-seconds <number>", "most seconds for leaving (default: 25)", wholeNumber(1, 86_400))
    .option("--metrics-port <number>", "port of /metrics, /healthz and /readyz; 0: any free port", portNumber)
    .option("--metrics-host <address>", "address of that port (default: 127.0.0.1, this machine only)", nonEmpty)
    .addHelpText("after", helpTexts.worker)
    .action(async (options: WorkerOptions) => {
      const { workerCommand } = await import("./commands/worker.ts");
      done(await workerCommand(context, options));
    });
  const queues = program
    .command("queues")
    .description("Show the queues of a Redis: waiting and running jobs, workers, and dead letters with their causes.");
  addRedisOptions(queues, "in which work waits")
    .option("--limit <number>", "most dead letters of each queue (default: 20)", wholeNumber(1, 1_000))
    .option("--json", "print every queue as a line of JSON")
    .addHelpText("after", helpTexts.queues)
    .action(async (options: QueuesOptions) => {
      const { queuesCommand } = await import("./commands/queues.ts");
      done(await queuesCommand(context, options));
    });
}
