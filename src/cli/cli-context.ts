import { fileURLToPath } from "node:url";
import type { Invocation } from "./invocation.ts";

export type Environment = Readonly<Record<string, string | undefined>>;

/** What commands see of the process they run in. */
export interface CliContext {
  readonly environment: Environment;
  readonly directory: string;
  readonly invocation: Invocation;
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  /** A line of the answer. */
  readonly out: (line: string) => void;
  /** A line beside the answer, on the other stream. */
  readonly note: (line: string) => void;
}

export function processContext(): CliContext {
  const { env, stdout, stderr } = process;
  const directory = process.cwd();
  // The file that lies beside this one in `src/cli` and in `dist/cli`.
  const main = fileURLToPath(new URL(`./main${import.meta.url.endsWith(".ts") ? ".ts" : ".js"}`, import.meta.url));
  return {
    environment: env,
    directory,
    invocation: { main, directory, script: env["npm_lifecycle_event"] || undefined },
    // Opened only when somebody reads it: looking at it may keep a process alive.
    get stdin() {
      return process.stdin;
    },
    stdout,
    out: (line) => stdout.write(`${line}\n`),
    note: (line) => stderr.write(`${line}\n`),
  };
}
