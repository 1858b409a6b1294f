import { type Command, Option } from "commander";
import type { CliContext } from "./cli-context.ts";
import type { QueuesOptions } from "./commands/queues.ts";
import type { WorkerOptions } from "./commands/worker.ts";
import type { ExitCode } from "./failure.ts";
import * as helpTexts from "./help-texts.ts";
import { addRedisOptions, agentsOption, mcpOption, nonEmpty, portNumber, wholeNumber } from "./options.ts";
import { queuePlan } from "./worker/queue-plan.ts";

type Done = (exitCode: ExitCode) => void;

/** `worker`, which runs agents and tools for other processes, and `queues`, which shows their queues. */
export function addWorkerCommands(program: Command, context: CliContext, done: Done): void {
  const worker = program
    .command("worker")
    .description(
      "Run agents and queued tools for other processes, on any machine with access to the same Redis or Postgres.",
    )
    .addOption(agentsOption("agent file that exports the definitions to run"))
    .addOption(mcpOption())
    .option("--ask", "run questions of `ask` with the same --files, --model and --max-readers")
    .addOption(
      new Option("--files <folder>", "with --ask: the folder, with the same path as in `ask`").argParser(nonEmpty),
    )
    .addOption(new Option("--model <name>", "with --ask: the model, as in `ask`").argParser(nonEmpty))
    .option("--max-readers <number>", "with --ask: the number of readers, as in `ask`", wholeNumber(1, 50));
  worker.addOption(
    new Option("--store <url>", "postgres://… with the agents, and with the queues unless Redis is given").argParser(
      nonEmpty,
    ),
  );
  addRedisOptions(worker, "with the agents and queues")
    .option(
      "--queues <list>",
      "tool queues with concurrency and rate: a,b=4,c=2@30/m; or none (default: all of the definitions, one job at a time)",
      queuePlan,
    )
    .option(
      "--concurrency <number>",
      "maximum number of agents at work at a time; waiting ones do not count (default: 50)",
      wholeNumber(1, 10_000),
    )
    .option("--drain-seconds <number>", "maximum number of seconds to stop (default: 25)", wholeNumber(1, 86_400))
    .option("--metrics-port <number>", "port of /metrics, /healthz and /readyz; 0: any free port", portNumber)
    .option("--metrics-host <address>", "address to bind (default: 127.0.0.1, this machine only)", nonEmpty)
    .addHelpText("after", helpTexts.worker)
    .action(async (options: WorkerOptions) => {
      const { workerCommand } = await import("./commands/worker.ts");
      done(await workerCommand(context, options));
    });
  const queues = program
    .command("queues")
    .description(
      "Show the queues of a Redis or Postgres: waiting and running jobs, workers, and dead letters with their causes.",
    );
  queues.addOption(new Option("--store <url>", "postgres://… with the queues").argParser(nonEmpty));
  addRedisOptions(queues, "with the queues")
    .option("--limit <number>", "maximum number of dead letters of each queue (default: 20)", wholeNumber(1, 1_000))
    .option("--json", "print every queue as a line of JSON")
    .addHelpText("after", helpTexts.queues)
    .action(async (options: QueuesOptions) => {
      const { queuesCommand } = await import("./commands/queues.ts");
      done(await queuesCommand(context, options));
    });
}
