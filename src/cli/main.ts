#!/usr/bin/env node
import { failureOf, tellWarnings } from "./failure.ts";
import { runProgram } from "./program.ts";

// When a reader such as `head` closes the pipe, that is no failure.
for (const stream of [process.stdout, process.stderr]) {
  stream.on("error", (error: NodeJS.ErrnoException) => {
    if (error.code === "EPIPE") process.exit(0);
    throw error;
  });
}

function fail(error: unknown): never {
  const failure = failureOf(error, process.env);
  process.stderr.write(`${failure.text}\n`);
  process.exit(failure.exitCode);
}

tellWarnings(
  process,
  (line) => process.stderr.write(`${line}\n`),
  () => performance.now(),
);
process.on("uncaughtException", fail);
process.on("unhandledRejection", fail);

// Not process.exit, which would drop output that a pipe has not taken yet.
process.exitCode = await runProgram(process.argv.slice(2));
