import type { CliContext } from "../cli-context.ts";
import { linkToParent } from "../dev/session-link.ts";
import { type ExitCode, exitCodes, failureOf } from "../failure.ts";
import { placeText, UnloadableFileError } from "../job/agent-file.ts";
import { chatCommand } from "./chat.ts";

/** The conversation of `troupe dev`, in its own process. Ends the process also if the agent file keeps timers or servers open. */
export async function devSessionCommand(context: CliContext): Promise<ExitCode> {
  const link = await linkToParent();
  const { file, options } = link.start;
  let exitCode: ExitCode = exitCodes.success;
  try {
    exitCode = await chatCommand(context, file, options, link);
    link.left(exitCode);
  } catch (error) {
    const failure = failureOf(error, context.environment);
    exitCode = failure.exitCode;
    link.failed([failure.text, ...sourceLines(error, context.directory)].join("\n"), exitCode);
  }
  // `process.exit` alone would drop output that a pipe has not read yet.
  await new Promise<void>((resolve) => void context.stdout.write("", () => resolve()));
  process.exit(exitCode);
}

/** The lines of the agent file where it is wrong. */
function sourceLines(error: unknown, directory: string): string[] {
  if (!(error instanceof UnloadableFileError) || error.fault === undefined) return [];
  const { fault } = error;
  return ["", `  ${placeText(fault, directory)}`, ...fault.source.map((line) => `    ${line}`), ""];
}
