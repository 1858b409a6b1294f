import { userInfo } from "node:os";
import { relative } from "node:path";
import { shellWord } from "../base/index.ts";

type Environment = Readonly<Record<string, string | undefined>>;

/** The process's resources that commands use. */
export interface CliContext {
  readonly environment: Environment;
  readonly directory: string;
  readonly invocation: Invocation;
  readonly stdin: NodeJS.ReadStream;
  readonly stdout: NodeJS.WriteStream;
  /** Writes a line of the result to standard output. */
  readonly out: (line: string) => void;
  /** Writes a line to standard error that is not part of the result. */
  readonly note: (line: string) => void;
}

/** `main`: path of the process's entry file. */
export function processContext(main: string): CliContext {
  const { env, stdout, stderr } = process;
  const directory = process.cwd();
  return {
    environment: env,
    directory,
    invocation: { main, directory, script: env["npm_lifecycle_event"] || undefined },
    // A getter, because opening standard input may keep the process alive.
    get stdin() {
      return process.stdin;
    },
    stdout,
    out: (line) => stdout.write(`${line}\n`),
    note: (line) => stderr.write(`${line}\n`),
  };
}

/** How this program was started, so that the commands it prints can be run unchanged. */
export interface Invocation {
  /** Path of the running file: `…/src/cli/main.ts` in a clone, `…/dist/cli/main.js` in a package. */
  readonly main: string;
  readonly directory: string;
  /** Name of the npm script that started the program, if any. */
  readonly script: string | undefined;
}

/** The command line of a subcommand: `npm start -- --resume`, `npm run troupe -- show x`, `npx troupe show x`. */
export function commandLine(
  { main, directory, script }: Invocation,
  command: string,
  parameters: readonly string[],
): string {
  const words = parameters.map(shellWord);
  if (!main.endsWith(".ts")) return ["npx troupe", command, ...words].join(" ");
  if (script === undefined) return ["node", shellWord(relative(directory, main)), command, ...words].join(" ");
  if (command === "ask") return words.length === 0 ? "npm start" : ["npm start --", ...words].join(" ");
  return ["npm run troupe --", command, ...words].join(" ");
}

/** The name of the operating system's user, which is stored with a decision. */
export function userName(): string {
  try {
    return userInfo().username;
  } catch {
    // In a container, the user id may have no name.
    return "command line";
  }
}
