import { spawn } from "node:child_process";
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { commandEnvironment, repositoryRoot } from "../../scripts/run-command.ts";
import { type TroupeEvent, troupeEventSchema } from "../../src/state/index.ts";

const main = join(repositoryRoot, "src", "cli", "main.ts");

export interface Ended {
  readonly stdout: string;
  readonly stderr: string;
  /** Exit code, or the name of the signal that ended it. */
  readonly code: number | string;
}

export interface CliProcess {
  readonly pid: number;
  readonly ended: Promise<Ended>;
  /** Resolves with the first line of stdout, past or future, for which the test holds; rejects if there is none. */
  line(test: (line: string) => boolean): Promise<string>;
  /** Called for every chunk of stdout. */
  onOutput(listener: () => void): void;
  signal(signal: NodeJS.Signals): void;
  /** Writes lines to stdin, if it was opened. */
  type(...lines: readonly string[]): void;
  /** Closes stdin, as Ctrl-D does. */
  endInput(): void;
  /** The output on stdout so far. */
  outputSoFar(): string;
  /** The output on stderr so far. */
  errorsSoFar(): string;
  /** Closes stdout, as a reader that has seen enough. */
  closeOutput(): void;
}

/**
 * Starts the command as in a clone, without a key and without a terminal, in a temporary folder. With
 * `hasInput` its stdin is a pipe that stays open.
 */
export function startCli(
  directory: string,
  words: readonly string[],
  environment: Readonly<Record<string, string>> = {},
  hasInput: boolean = false,
): CliProcess {
  const child = spawn("node", [main, ...words], {
    cwd: directory,
    env: commandEnvironment({ OPENAI_API_KEY: "", OPENAI_BASE_URL: "", npm_lifecycle_event: "", ...environment }),
    stdio: [hasInput ? "pipe" : "ignore", "pipe", "pipe"],
  });
  // Input to a process that has just ended is lost.
  child.stdin?.on("error", () => {});
  let stdout = "";
  let stderr = "";
  const listeners = new Set<() => void>();
  const { stdout: out, stderr: errors } = child;
  if (out === null || errors === null) throw new Error("the command was started without pipes for its outputs");
  out.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    for (const listener of listeners) listener();
  });
  errors.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const ended = new Promise<Ended>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => resolve({ stdout, stderr, code: code ?? signal ?? "unknown" }));
  });
  return {
    pid: child.pid ?? 0,
    ended,
    line(test) {
      return new Promise((resolve, reject) => {
        const look = (): void => {
          const found = stdout.split("\n").slice(0, -1).find(test);
          if (found !== undefined) resolve(found);
        };
        listeners.add(look);
        look();
        ended.then(
          () => reject(new Error(`The line never came.\n${stdout}\n${stderr}`)),
          (error: unknown) => reject(error),
        );
      });
    },
    onOutput: (listener) => listeners.add(listener),
    signal: (signal) => child.kill(signal),
    type: (...lines) => lines.forEach((line) => child.stdin?.write(`${line}\n`)),
    endInput: () => child.stdin?.end(),
    outputSoFar: () => stdout,
    errorsSoFar: () => stderr,
    closeOutput: () => out.destroy(),
  };
}

export function runCli(
  directory: string,
  words: readonly string[],
  environment?: Readonly<Record<string, string>>,
): Promise<Ended> {
  return startCli(directory, words, environment).ended;
}

/** The same with these lines on stdin, and then its end. */
export function runCliWith(directory: string, lines: readonly string[], words: readonly string[]): Promise<Ended> {
  const started = startCli(directory, words, {}, true);
  started.type(...lines);
  started.endInput();
  return started.ended;
}

/** The events of `--json`; throws if a line is not JSON. */
export function eventsIn(stdout: string): TroupeEvent[] {
  return stdout
    .trimEnd()
    .split("\n")
    .map((line) => troupeEventSchema.parse(JSON.parse(line)));
}

export function eventOf(line: string): TroupeEvent | undefined {
  const parsed = troupeEventSchema.safeParse(JSON.parse(line));
  return parsed.success ? parsed.data : undefined;
}

/** A folder with files, to work in. */
export function workFolder(files: Readonly<Record<string, string>>): { readonly path: string; remove(): void } {
  const path = mkdtempSync(join(tmpdir(), "troupe-cli-"));
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(path, name)), { recursive: true });
    writeFileSync(join(path, name), text);
  }
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** Four documents about one topic, so that several readers are started. */
export const allotment = {
  "notes/water.md": `# Water

The pump draws rain water from the cistern. It runs from May to September; in winter the pump is drained, because frost would burst its housing.

On Sundays the pump is switched off.
`,
  "notes/fees.md": `# Fees

The yearly fee is 85 euros. The fee for the pump is 5 euros a month, in winter too.
`,
  "notes/members.md": `# Members

The pump is looked after by Ms. Okafor. In winter she drains the pump.
`,
  "notes/tools.md": `# Tools

Spades are in the shed. The key of the pump house hangs in the office in winter.
`,
};

export const question = "Why is the pump drained in winter?";
export const answer = /in winter the pump is drained, because frost would burst its housing\. \(water\.md:3\)/;
