import { type ChildProcess, spawn } from "node:child_process";
import { mkdirSync } from "node:fs";
import { commandEnvironment } from "../run-command.ts";

export type RuntimeName = "node" | "bun" | "deno";

/** A JavaScript runtime on which the package is checked. */
export interface Runtime {
  readonly name: RuntimeName;
  readonly command: string;
  /** The arguments before the path of a program. */
  readonly before: readonly string[];
  /** As the runtime prints it: `2.9.6`. */
  readonly version: string;
}

export interface ProgramOptions {
  /** The working directory; is made if it is missing. */
  readonly folder: string;
  readonly environment?: Readonly<Record<string, string>>;
  /** The whole of stdin. Default: nothing. */
  readonly input?: string;
}

export interface ProgramEnd {
  readonly code: number | null;
  readonly stdout: string;
  /** Both streams, in order of arrival. */
  readonly output: string;
}

/** No program of the checks runs this long by itself, in milliseconds. */
const LONGEST_MS = 60_000;
const running = new Set<ChildProcess>();
process.once("exit", () => running.forEach((child) => child.kill("SIGKILL")));

/** One process of the runtime. Owns the process: it is killed after a minute, and when this process ends. */
export class RunningProgram {
  readonly ended: Promise<ProgramEnd>;
  readonly #child: ChildProcess;
  #stdout = "";
  #output = "";
  #isOver = false;
  #noticed: (() => void)[] = [];

  constructor({ command, before }: Runtime, words: readonly string[], options: ProgramOptions) {
    mkdirSync(options.folder, { recursive: true });
    const child = spawn(command, [...before, ...words], {
      cwd: options.folder,
      env: commandEnvironment({
        NODE_OPTIONS: "",
        OPENAI_API_KEY: "",
        OPENAI_BASE_URL: "",
        TROUPE_REDIS: "",
        npm_lifecycle_event: "",
        ...options.environment,
      }),
      stdio: ["pipe", "pipe", "pipe"],
    });
    this.#child = child;
    running.add(child);
    const tooLong = setTimeout(() => child.kill("SIGKILL"), LONGEST_MS);
    const hear = (text: string, isStdout: boolean): void => {
      this.#output += text;
      if (isStdout) this.#stdout += text;
      this.#notice();
    };
    child.stdout.setEncoding("utf8").on("data", (text: string) => hear(text, true));
    child.stderr.setEncoding("utf8").on("data", (text: string) => hear(text, false));
    // A program may end before it has read its input.
    child.stdin.on("error", () => undefined);
    child.stdin.end(options.input ?? "");
    this.ended = new Promise((resolve) => {
      const over = (code: number | null): void => {
        clearTimeout(tooLong);
        running.delete(child);
        this.#isOver = true;
        this.#notice();
        resolve({ code, stdout: this.#stdout, output: this.#output });
      };
      child.once("error", (error) => {
        this.#output += `${command} could not be started: ${error.message}`;
        over(null);
      });
      child.once("close", over);
    });
  }

  get pid(): number {
    return this.#child.pid ?? 0;
  }

  /** Resolves with the first match in the output; rejects if the program ends before. */
  async seen(pattern: RegExp): Promise<RegExpExecArray> {
    for (;;) {
      const match = pattern.exec(this.#output);
      if (match !== null) return match;
      if (this.#isOver) throw new Error(`The program ended before it printed ${pattern}:\n${this.#output}`);
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#noticed.push(resolve);
      await promise;
    }
  }

  async end(signal: "SIGKILL" | "SIGTERM"): Promise<ProgramEnd> {
    this.#child.kill(signal);
    return await this.ended;
  }

  #notice(): void {
    const noticed = this.#noticed;
    this.#noticed = [];
    for (const tell of noticed) tell();
  }
}

/** Runs a program to its end and returns its stdout. Throws with the output if it fails. */
export async function outputOf(runtime: Runtime, words: readonly string[], options: ProgramOptions): Promise<string> {
  const { code, stdout, output } = await new RunningProgram(runtime, words, options).ended;
  if (code !== 0) throw new Error(`${words.join(" ")} ended with the exit code ${code}:\n${output}`);
  return stdout;
}
