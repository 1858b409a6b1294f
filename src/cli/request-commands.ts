import type { Command } from "commander";
import type { JsonObject } from "../state/index.ts";
import type { CliContext } from "./cli-context.ts";
import type { DecideOptions, Wish } from "./commands/decide.ts";
import type { RequestsOptions } from "./commands/requests.ts";
import type { ExitCode } from "./failure.ts";
import * as helpTexts from "./help-texts.ts";
import { readArgument } from "./inline/standard-input.ts";
import {
  jsonObject,
  nonEmpty,
  addPageOptions,
  addStoreOptions,
  agentsOption,
  inspectOption,
  jsonOption,
  onOption,
  quietOption,
} from "./options.ts";

type Done = (exitCode: ExitCode) => void;

const requestHelp = "its id or its prefix (default: the only open one)";
const reasonHelp = "reason, stored with the decision; with `reject` also sent to the model";

/** `requests`, and the commands that decide them. */
export function addRequestCommands(program: Command, context: CliContext, done: Done): void {
  const requests = program
    .command("requests")
    .description("List the requests that wait for a decision or an answer, oldest first.");
  addStoreOptions(addPageOptions(requests, "requests"))
    .option("--all", "include decided ones, with their decisions and who decided")
    .option("--json", "print every request, with its arguments, as a line of JSON")
    .addHelpText("after", helpTexts.requests)
    .action(async (options: RequestsOptions) => {
      const { requestsCommand } = await import("./commands/requests.ts");
      done(await requestsCommand(context, options));
    });
  deciding(program, "approve", helpTexts.approve, "Approve a waiting tool call.")
    .argument("[requestId]", requestHelp)
    .option("--reason <text>", reasonHelp, nonEmpty)
    .option("--edit <json>", "run it with these arguments instead of the model's", jsonObject)
    .action(async (requestId: string | undefined, options: ApproveOptions) => {
      const { reason, edit } = options;
      const verdict = edit === undefined ? "approved" : "edited";
      await decide(context, { requestId, verdict, reason, arguments: edit }, options, done);
    });
  deciding(
    program,
    "reject",
    helpTexts.reject,
    "Reject a request: the call does not run, and the model gets the reason.",
  )
    .argument("[requestId]", requestHelp)
    .option("--reason <text>", reasonHelp, nonEmpty)
    .action(async (requestId: string | undefined, options: RejectOptions) => {
      const { reason } = options;
      await decide(context, { requestId, verdict: "rejected", reason }, options, done);
    });
  deciding(program, "answer", helpTexts.answer, "Answer a question, or give the result of a client tool.")
    .usage("[options] [requestId] <text|json>")
    .argument(
      "<words...>",
      "the answer, in quotes, or - for standard input; before it the id or its prefix, if several are open",
    )
    .option("--error", "the call failed; the text is the reason")
    .action(async (words: string[], options: AnswerOptions, command: Command) => {
      const [given = "", first] = words.toReversed();
      if (words.length > 2) command.error("error: too many words for 'answer'; put the answer in quotes");
      const text = await readArgument(context, given);
      const answer = { text, isError: options.error === true };
      await decide(context, { requestId: first, verdict: "answered", answer }, options, done);
    });
}

interface ApproveOptions extends DecideOptions {
  readonly reason?: string;
  readonly edit?: JsonObject;
}
interface RejectOptions extends DecideOptions {
  readonly reason?: string;
}
interface AnswerOptions extends DecideOptions {
  readonly error?: boolean;
}

/** The common options of all commands that decide. */
function deciding(program: Command, name: string, help: string, description: string): Command {
  const command = program
    .command(name)
    .description(description)
    .option("--by <name>", "name stored with the decision (default: the user of this machine)", nonEmpty)
    .option("--no-run", "only record the decision, for the process that continues the agent")
    .addOption(agentsOption());
  return addStoreOptions(command)
    .addOption(jsonOption())
    .addOption(quietOption())
    .addOption(onOption())
    .addOption(inspectOption())
    .addHelpText("after", help);
}

async function decide(context: CliContext, wish: Wish, options: DecideOptions, done: Done): Promise<void> {
  const { decideCommand } = await import("./commands/decide.ts");
  done(await decideCommand(context, wish, options));
}
