import { PassThrough, Readable } from "node:stream";
import type { CliContext } from "../../../src/cli/cli-context.ts";
import { runProgram } from "../../../src/cli/program.ts";

export interface Said {
  readonly code: number;
  /** Lines of stdout, and those of stderr. */
  readonly out: readonly string[];
  readonly notes: readonly string[];
}

/** Runs the command as the installed package does, in this process and without a terminal; `input` is piped in. */
export async function troupe(
  words: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  input: Iterable<string | Uint8Array> = [],
): Promise<Said> {
  const out: string[] = [];
  const notes: string[] = [];
  const context: CliContext = {
    environment,
    directory: process.cwd(),
    invocation: { main: "/x/dist/cli/main.js", directory: process.cwd(), script: undefined },
    stdin: Object.assign(Readable.from(input, { objectMode: false }), { isTTY: false }) as unknown as NodeJS.ReadStream,
    stdout: Object.assign(new PassThrough(), { isTTY: false }) as unknown as NodeJS.WriteStream,
    out: (line) => out.push(...line.split("\n")),
    note: (line) => notes.push(...line.split("\n")),
  };
  return { code: await runProgram(words, context), out, notes };
}
