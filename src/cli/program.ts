import { Command, CommanderError } from "commander";
import { addBudgetChangeOptions, addBudgetOptions } from "./budget-options.ts";
import type { CliContext } from "./cli-context.ts";
import type { AbortOptions } from "./commands/abort.ts";
import type { SteerCommandOptions } from "./commands/steer.ts";
import type { SetBudgetOptions } from "./commands/budget.ts";
import type { ForecastOptions } from "./commands/forecast.ts";
import type { AskOptions } from "./commands/ask.ts";
import type { ChatOptions } from "./commands/chat.ts";
import type { ListOptions } from "./commands/list.ts";
import type { ResumeOptions } from "./commands/resume.ts";
import type { RunOptions } from "./commands/run.ts";
import type { ShowOptions } from "./commands/show.ts";
import { type ExitCode, exitCodes, failureOf } from "./failure.ts";
import * as helpTexts from "./help-texts.ts";
import {
  nonEmpty,
  wholeNumber,
  addPageOptions,
  addStoreOptions,
  agentsOption,
  inspectOption,
  jsonOption,
  mcpOption,
  onOption,
  quietOption,
  statelyOption,
} from "./options.ts";
import { addDeletionCommands } from "./deletion-commands.ts";
import { addEvalCommand } from "./eval-command.ts";
import { addForkCommand } from "./fork-command.ts";
import { addInitCommand } from "./init-command.ts";
import { addInspectCommands } from "./inspect-commands.ts";
import { addMcpCommands } from "./mcp-commands.ts";
import { closeOpened } from "./opened-servers.ts";
import { addMcpServeCommand } from "./mcp-serve-commands.ts";
import { packageFields } from "./own-files.ts";
import { addReplayCommands } from "./replay-commands.ts";
import { addRequestCommands } from "./request-commands.ts";
import { addScheduleCommands } from "./schedule-commands.ts";
import { addSchemaCommand } from "./schema-command.ts";
import { addListenOptions, addServeCommand } from "./serve-commands.ts";
import { addWorkerCommands } from "./worker-commands.ts";

/** Runs a command line (without `node` and the file) and returns the exit code. Errors go to standard error. */
export async function runProgram(words: readonly string[], context: CliContext): Promise<ExitCode> {
  let exitCode: ExitCode = exitCodes.success;
  const program = programFor(context, (code) => {
    exitCode = code;
  });
  try {
    await program.parseAsync(withPorts(words), { from: "user" });
    return exitCode;
  } catch (error) {
    // Commander has already printed the error or the help.
    if (error instanceof CommanderError) return error.exitCode === 0 ? exitCodes.success : exitCodes.usage;
    const failure = failureOf(error, context.environment);
    context.note(failure.text);
    return failure.exitCode;
  } finally {
    await closeOpened(context);
  }
}

/** `--inspect` accepts a port only as `--inspect=9000`, so that the following word is never read as one. */
function withPorts(words: readonly string[]): string[] {
  const end = words.indexOf("--");
  return words.map((word, index) => (word === "--inspect" && (end < 0 || index < end) ? "--inspect=0" : word));
}

function programFor(context: CliContext, done: (exitCode: ExitCode) => void): Command {
  const program = new Command("troupe")
    .description("Durable, budgeted teams of LLM agents, on the command line.")
    .usage("<command> [options]")
    .version(packageFields().version, "--version", "show the version of troupe")
    .helpCommand(false)
    .exitOverride()
    .configureOutput({
      writeOut: (text) => context.out(text.trimEnd()),
      writeErr: (text) => context.note(text.trimEnd()),
      outputError: (text, write) => write(usageLine(text)),
    })
    .addHelpText("after", helpTexts.program);
  const ask = program
    .command("ask")
    .description("Ask a team of agents a question about the text files of a folder; each answer has its sources.")
    .option(
      "--question <text>",
      "the question; - reads it from standard input (default: a question about this project)",
      nonEmpty,
    )
    .option("--files <folder>", "the folder of text files (default: this project's own documents)", nonEmpty)
    .option("--resume", "continue the newest unfinished question; if it is finished, print its answer again")
    .option(
      "--model <name>",
      "model of the server, or offline (default: gpt-5-mini with OPENAI_API_KEY, else offline)",
      nonEmpty,
    )
    .option(
      "--max-readers <number>",
      "maximum number of files to read, each by its own reader (default: 6)",
      wholeNumber(1, 50),
    )
    .addOption(mcpOption())
    .option("--serve", "serve the team over HTTP; callers ask the questions");
  addStoreOptions(addBudgetOptions(addListenOptions(ask)))
    .addOption(jsonOption())
    .addOption(quietOption())
    .addOption(onOption())
    .addOption(inspectOption())
    .addOption(statelyOption())
    .addHelpText("after", helpTexts.ask)
    .action(async (options: AskOptions) => {
      const { askCommand } = await import("./commands/ask.ts");
      done(await askCommand(context, options));
    });
  const run = program
    .command("run")
    .description("Run one turn of an agent from a file.")
    .argument("<file>", "agent file, .ts or .js, that exports the definition")
    .argument("<input>", "the message for the agent; - reads it from standard input", nonEmpty)
    .option("--agent-id <id>", "continue the conversation of this agent, or give a new one this id", nonEmpty)
    .option("--agent <name>", "the agent, if the file exports several", nonEmpty)
    .addOption(mcpOption());
  addStoreOptions(addBudgetOptions(run))
    .addOption(jsonOption())
    .addOption(quietOption())
    .addOption(onOption())
    .addOption(inspectOption())
    .addOption(statelyOption())
    .addHelpText("after", helpTexts.run)
    .action(async (file: string, input: string, options: RunOptions) => {
      const { runCommand } = await import("./commands/run.ts");
      done(await runCommand(context, file, input, options));
    });
  addInitCommand(program, context, done);
  addChatCommand(program, context, done);
  addRequestCommands(program, context, done);
  addScheduleCommands(program, context, done);
  addServeCommand(program, context, done);
  addWorkerCommands(program, context, done);
  addStoreCommands(program, context, done);
  addDeletionCommands(program, context, done);
  addInspectCommands(program, context, done);
  addEvalCommand(program, context, done);
  addForkCommand(program, context, done);
  addMcpCommands(program, context, done);
  addReplayCommands(program, context, done);
  addMcpServeCommand(program, context, done);
  addSchemaCommand(program, context, done);
  // Commander inherits settings to commands only on request.
  for (const command of program.commands)
    command.copyInheritedSettings(program).helpOption("-h, --help", "show this help");
  return program;
}

function addChatCommand(program: Command, context: CliContext, done: (exitCode: ExitCode) => void): void {
  const chat = program
    .command("chat")
    .description("Talk with an agent from a file, over any number of turns.")
    .argument("<file>", "agent file, .ts or .js, that exports the definition")
    .option("--agent-id <id>", "continue the conversation of this agent, or give a new one this id", nonEmpty)
    .option("--agent <name>", "the agent, if the file exports several", nonEmpty)
    .addOption(mcpOption());
  addStoreOptions(addBudgetOptions(chat))
    .addOption(inspectOption())
    .addOption(statelyOption())
    .addHelpText("after", helpTexts.chat)
    .action(async (file: string, options: ChatOptions) => {
      const { chatCommand } = await import("./commands/chat.ts");
      done(await chatCommand(context, file, options));
    });
}

/** Commander's message in the form of all other errors: on one line. */
function usageLine(text: string): string {
  const line = text
    .trim()
    .replace(/^error: /, "")
    .replaceAll(/\s*\n\s*/g, " ");
  return `troupe: ${line} (see --help)\n`;
}

function addStoreCommands(program: Command, context: CliContext, done: (exitCode: ExitCode) => void): void {
  const list = program.command("list").description("List the root agents of a store, newest first.");
  addStoreOptions(addPageOptions(list, "agents"))
    .option("--json", "print every agent as a line of JSON")
    .addHelpText("after", helpTexts.list)
    .action(async (options: ListOptions) => {
      const { listCommand } = await import("./commands/list.ts");
      done(await listCommand(context, options));
    });
  const show = program
    .command("show")
    .description("Show an agent: its tree, accounts, trace and history. Another process may run it meanwhile.")
    .argument("[agentId]", "its id or its prefix (default, with --budget: the newest)");
  addStoreOptions(show)
    .option("--json", "print everything as one line of JSON")
    .option("--full", "do not cut long texts")
    .option("--budget", "show only the accounts: each limit with the used, reserved and unconfirmed amounts")
    .option(
      "--summary",
      "show only a summary of the run: why it stopped, who spent it, what was slow, costs by model and agent",
    )
    .addHelpText("after", helpTexts.show)
    .action(async (agentId: string | undefined, options: ShowOptions) => {
      const { showCommand } = await import("./commands/show.ts");
      done(await showCommand(context, agentId, options));
    });
  const resume = program
    .command("resume")
    .description(
      "Continue an agent, or all unfinished ones that no process runs; with a new budget also one that a limit stopped.",
    )
    .argument("[agentId]", "its id or its prefix (default: all)")
    .addOption(agentsOption())
    .addOption(mcpOption());
  addStoreOptions(addBudgetOptions(resume))
    .addOption(jsonOption())
    .addOption(quietOption())
    .addOption(onOption())
    .addOption(inspectOption())
    .addOption(statelyOption())
    .addHelpText("after", helpTexts.resume)
    .action(async (agentId: string | undefined, options: ResumeOptions) => {
      const { resumeCommand } = await import("./commands/resume.ts");
      done(await resumeCommand(context, agentId, options));
    });
  const budget = program
    .command("budget")
    .description(
      "List the accounts of owners and of the tenant, add to one of them, or change limits of an agent's whole lifetime.",
    )
    .argument("[agentId]", "its id or its prefix, or an account such as owner:perDay:ada (default: list the accounts)");
  addStoreOptions(addPageOptions(addBudgetChangeOptions(budget), "accounts"))
    .option("--owner <id>", "list only the accounts of this owner and of the tenant", nonEmpty)
    .option("--json", "print each account as a line of JSON")
    .addHelpText("after", helpTexts.budget)
    .action(async (agentId: string | undefined, options: SetBudgetOptions) => {
      const { budgetCommand } = await import("./commands/budget.ts");
      done(await budgetCommand(context, agentId, options));
    });
  const forecast = program
    .command("forecast")
    .description(
      "Show what owners and the tenant have spent, and when they will meet their limits at the present rate.",
    )
    .argument("[agentId]", "show the accounts of this agent's tree instead: its id or its prefix")
    .option("--owner <id>", "only the accounts of this owner and of the tenant", nonEmpty)
    .option("--json", "print each limit as a line of JSON");
  addStoreOptions(forecast)
    .addHelpText("after", helpTexts.forecast)
    .action(async (agentId: string | undefined, options: ForecastOptions) => {
      const { forecastCommand } = await import("./commands/forecast.ts");
      done(await forecastCommand(context, agentId, options));
    });
  const steer = program
    .command("steer")
    .description("Give another input to an agent's open turn, whichever process runs it.")
    .argument("<agentId>", "its id or its prefix")
    .argument("<text>", "the input", nonEmpty);
  addStoreOptions(steer)
    .option("--key <key>", "idempotency key: the same key is the same input", nonEmpty)
    .addHelpText("after", helpTexts.steer)
    .action(async (agentId: string, text: string, options: SteerCommandOptions) => {
      const { steerCommand } = await import("./commands/steer.ts");
      done(await steerCommand(context, { agentId, text }, options));
    });
  const abort = program
    .command("abort")
    .description("End an agent's open turn and its subagents, whichever process runs it.")
    .argument("<agentId>", "its id or its prefix");
  addStoreOptions(abort)
    .option("--reason <text>", "reason, stored with the turn", nonEmpty)
    .addHelpText("after", helpTexts.abort)
    .action(async (agentId: string, options: AbortOptions) => {
      const { abortCommand } = await import("./commands/abort.ts");
      done(await abortCommand(context, agentId, options));
    });
}
