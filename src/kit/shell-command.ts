import { spawn } from "node:child_process";
import { setTimeout as delay } from "node:timers/promises";
import { ToolNotStartedError } from "../errors/index.ts";

/** A command for the shell of a workspace. */
export interface ShellCommand {
  /** Text for `/bin/sh -c`. */
  readonly command: string;
  /** The folder to start in, below the workspace; "" is its root. */
  readonly folder: string;
  /** Program and arguments that run the shell, for instance a sandbox. May be empty. */
  readonly wrap: readonly string[];
  /** All variables of the command's environment. */
  readonly environment: Readonly<Record<string, string>>;
  /** Milliseconds after which the command and all processes of its group are killed. */
  readonly timeoutMs: number;
  /** Characters of output to keep; of a longer one the beginning and the end are kept. */
  readonly maxOutputCharacters: number;
}

/** How a command ended. */
export interface CommandEnd {
  /** `null` if a signal ended the command. */
  readonly exitCode: number | null;
  /** The signal that ended the command; `null` if it ended by itself. */
  readonly signal: string | null;
  /** Whether it was killed because it exceeded its time. */
  readonly timedOut: boolean;
  /** What the command wrote to both of its outputs, in the order in which it arrived. */
  readonly output: string;
  /** Characters that are missing in the middle of `output`. */
  readonly leftOut: number;
}

/** How long the outputs of a command may stay open after its end, in milliseconds: a process that left its group may hold them. */
const DRAIN_MS = 1_000;

/**
 * Runs a command in a process group of its own, without input. At its end, at the time limit and when the signal is aborted the whole group
 * is killed, including processes that the command has left in the background.
 */
export async function runCommand(command: ShellCommand, folder: string, signal: AbortSignal): Promise<CommandEnd> {
  signal.throwIfAborted();
  const [program, ...before] = command.wrap;
  const shell = ["/bin/sh", "-c", command.command] as const;
  const words = program === undefined ? shell : ([program, ...before, ...shell] as const);
  const child = spawn(words[0], words.slice(1), {
    cwd: folder,
    env: command.environment,
    detached: true,
    stdio: ["ignore", "pipe", "pipe"],
  });
  const output = new CutOutput(command.maxOutputCharacters);
  const decoders = [child.stdout, child.stderr].map((stream) => {
    const decoder = new TextDecoder();
    stream.on("data", (bytes: Buffer) => output.add(decoder.decode(bytes, { stream: true })));
    return decoder;
  });
  const killGroup = (): void => {
    if (child.pid === undefined) return;
    try {
      process.kill(-child.pid, "SIGKILL");
    } catch {
      // All of its processes have ended.
    }
  };
  let timedOut = false;
  const timer = setTimeout(() => {
    timedOut = true;
    killGroup();
  }, command.timeoutMs);
  signal.addEventListener("abort", killGroup, { once: true });
  try {
    const closed = new Promise<void>((resolve) => {
      child.once("close", () => resolve());
    });
    const { exitCode, signalName } = await new Promise<{ exitCode: number | null; signalName: string | null }>(
      (resolve, reject) => {
        child.once("error", (error) => {
          reject(new ToolNotStartedError(`The command could not be started: ${error.message}.`, { cause: error }));
        });
        child.once("exit", (exitCode, signalName) => resolve({ exitCode, signalName }));
      },
    );
    killGroup();
    await Promise.race([closed, delay(DRAIN_MS, undefined, { ref: false })]);
    for (const decoder of decoders) output.add(decoder.decode());
    return { exitCode, signal: signalName, timedOut, ...output.cut() };
  } finally {
    clearTimeout(timer);
    signal.removeEventListener("abort", killGroup);
    child.stdout.destroy();
    child.stderr.destroy();
  }
}

/** The beginning and the end of a text of any length, in bounded memory. */
class CutOutput {
  readonly #half: number;
  #head = "";
  #tail = "";
  #length = 0;

  constructor(most: number) {
    this.#half = Math.ceil(most / 2);
  }

  add(text: string): void {
    this.#length += text.length;
    const room = this.#half - this.#head.length;
    this.#head += text.slice(0, room);
    this.#tail += text.slice(Math.max(0, room));
    // Cut only now and then, because every cut copies.
    if (this.#tail.length > 4 * this.#half) this.#tail = this.#tail.slice(-this.#half);
  }

  cut(): Pick<CommandEnd, "output" | "leftOut"> {
    const tail = this.#tail.slice(-this.#half);
    const leftOut = this.#length - this.#head.length - tail.length;
    const output = leftOut === 0 ? this.#head + tail : `${this.#head}\n[… ${leftOut} characters …]\n${tail}`;
    return { output: output.toWellFormed(), leftOut };
  }
}
