import { type ChildProcess, fork, spawn } from "node:child_process";
import { once } from "node:events";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";

/** A server of the run, in a separate process. */
export interface ServerProcess {
  /** Its first line: the address on which it listens. */
  readonly address: string;
  /** Kills the process; resolves when it has exited. */
  stop(): Promise<void>;
}

/** Starts a server program of this folder and waits until it listens. */
export async function startServer(program: string, words: readonly string[]): Promise<ServerProcess> {
  const child = fork(pathOf(program), [...words], { stdio: ["ignore", "pipe", "inherit", "ipc"], execArgv: [] });
  const gone = endOf(child);
  const stop = async (): Promise<void> => {
    child.kill("SIGTERM");
    await gone;
  };
  if (child.stdout === null) throw new Error(`${program} has no standard output`);
  const ended = gone.then(() => {
    throw new Error(`${program} exited before it listened; see its output for the reason`);
  });
  ended.catch(() => undefined);
  const [address] = (await Promise.race([once(createInterface({ input: child.stdout }), "line"), ended])) as [string];
  return { address, stop };
}

export interface RunOptions {
  readonly environment?: Readonly<Record<string, string>> | undefined;
  /** Milliseconds after which it is killed with SIGKILL. */
  readonly limitMs: number;
  /** Milliseconds after its start at which it is killed with SIGKILL to simulate a crash. Default: never. */
  readonly killAfterMs?: number | undefined;
  /** Called with each line of its standard output. */
  readonly onLine?: ((line: string) => void) | undefined;
}

export interface RunEnd {
  readonly exitCode: number | null;
  readonly signal: NodeJS.Signals | null;
  readonly stdout: string;
  readonly stderr: string;
  readonly milliseconds: number;
  /** Whether it was still running at its limit. */
  readonly timedOut: boolean;
}

/** Runs a program of this repository until it exits or dies. Never rejects because of the program. */
export async function runProcess(program: string, words: readonly string[], options: RunOptions): Promise<RunEnd> {
  const begun = performance.now();
  let timedOut = false;
  const child = spawn(process.execPath, [pathOf(program), ...words], {
    stdio: ["ignore", "pipe", "pipe"],
    env: { ...process.env, NO_COLOR: "1", ...options.environment },
  });
  const stdout = collectText(child.stdout);
  const stderr = collectText(child.stderr);
  if (options.onLine) createInterface({ input: child.stdout }).on("line", options.onLine);
  const limit = setTimeout(() => {
    timedOut = true;
    child.kill("SIGKILL");
  }, options.limitMs);
  const killAfterMs = options.killAfterMs ?? options.limitMs;
  const crash = killAfterMs < options.limitMs ? setTimeout(() => child.kill("SIGKILL"), killAfterMs) : undefined;
  await endOf(child);
  clearTimeout(limit);
  clearTimeout(crash);
  const { exitCode, signalCode } = child;
  const milliseconds = performance.now() - begun;
  return { exitCode, signal: signalCode, stdout: stdout(), stderr: stderr(), milliseconds, timedOut };
}

/** Sends a signal to a process of the run. Returns false if it has exited already. */
export function signal(pid: number, name: NodeJS.Signals): boolean {
  try {
    return process.kill(pid, name);
  } catch {
    return false;
  }
}

function pathOf(program: string): string {
  return fileURLToPath(new URL(program, import.meta.url));
}

async function endOf(child: ChildProcess): Promise<void> {
  const ended = Promise.withResolvers<void>();
  child.once("close", () => ended.resolve());
  child.once("error", () => ended.resolve());
  await ended.promise;
}

function collectText(stream: NodeJS.ReadableStream): () => string {
  let text = "";
  stream.setEncoding("utf8");
  stream.on("data", (piece: string) => {
    text += piece;
  });
  return () => text;
}

/** The complete lines of a process's output, parsed as JSON. */
export function jsonLinesOf<Line>(text: string): Line[] {
  return text
    .slice(0, text.lastIndexOf("\n") + 1)
    .split("\n")
    .filter((line) => line.startsWith("{"))
    .map((line) => JSON.parse(line) as Line);
}
