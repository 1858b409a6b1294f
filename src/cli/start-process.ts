import { describeFileError, isNoSpace } from "../base/index.ts";
import { StoreUnavailableError } from "../errors/index.ts";
import { processContext } from "./cli-context.ts";
import { failureOf, tellWarnings } from "./failure.ts";
import { runProgram } from "./program.ts";

/** Runs the command line as this process's only task. `main`: path of the process's entry file. */
export async function startProcess(main: string, words: readonly string[]): Promise<void> {
  // If a reader such as `head` closes the pipe, the process has succeeded.
  for (const stream of [process.stdout, process.stderr]) {
    stream.on("error", (error: NodeJS.ErrnoException) => {
      if (error.code === "EPIPE") process.exit(0);
      throw isNoSpace(error) ? new StoreUnavailableError(describeFileError("the output", error)) : error;
    });
  }
  tellWarnings(
    process,
    (line) => process.stderr.write(`${line}\n`),
    () => performance.now(),
  );
  process.on("uncaughtException", fail);
  process.on("unhandledRejection", fail);
  // `process.exit` would drop output that a pipe has not read yet.
  process.exitCode = await runProgram(words, processContext(main));
}

function fail(error: unknown): never {
  const failure = failureOf(error, process.env);
  process.stderr.write(`${failure.text}\n`);
  process.exit(failure.exitCode);
}
