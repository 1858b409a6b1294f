import { spawn } from "node:child_process";
import { commandEnvironment, sourceCondition } from "../../scripts/run-command.ts";

export interface WaitingProcess {
  /** Resolves with the first complete line of stdout; rejects if the process has ended without one. */
  readonly firstLine: Promise<string>;
  /** Its whole output, and its exit code, or the name of the signal that ended it. */
  readonly ended: Promise<{ readonly stdout: string; readonly stderr: string; readonly code: number | string }>;
  kill(): void;
}

/** Runs a program in a separate process, where `import "troupe"` resolves to `src/`. */
export function startProgram(
  file: string,
  words: readonly string[] = [],
  environment: Readonly<Record<string, string>> = {},
): WaitingProcess {
  const child = spawn("node", [file, ...words], {
    env: commandEnvironment({ NODE_OPTIONS: `--conditions=${sourceCondition}`, ...environment }),
    stdio: ["ignore", "pipe", "pipe"],
  });
  let stdout = "";
  let stderr = "";
  const first = Promise.withResolvers<string>();
  child.stdout.setEncoding("utf8").on("data", (text: string) => {
    stdout += text;
    const end = stdout.indexOf("\n");
    if (end >= 0) first.resolve(stdout.slice(0, end));
  });
  child.stderr.setEncoding("utf8").on("data", (text: string) => {
    stderr += text;
  });
  const ended = new Promise<Awaited<WaitingProcess["ended"]>>((resolve, reject) => {
    child.once("error", reject);
    child.once("close", (code, signal) => {
      first.reject(new Error(`the program ended without a line: ${stderr}`));
      resolve({ stdout, stderr, code: code ?? signal ?? "unknown" });
    });
  });
  first.promise.catch(() => undefined);
  return { firstLine: first.promise, ended, kill: () => child.kill("SIGKILL") };
}
