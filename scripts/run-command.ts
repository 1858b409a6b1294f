import { spawn } from "node:child_process";
import { delimiter, join } from "node:path";
import { fileURLToPath } from "node:url";
import { Watchdog } from "./watchdog.ts";

/** The root of the repository, without a trailing slash. */
export const repositoryRoot = fileURLToPath(new URL("..", import.meta.url)).replace(/[/\\]$/, "");

/** The export condition that maps `import "troupe"` to `src/` instead of `dist/`. */
export const sourceCondition = "troupe-source";

export interface CommandOptions {
  /** Default: the root of the repository. */
  readonly directory?: string;
  readonly environment?: Readonly<Record<string, string>>;
  /**
   * Milliseconds after which the command and all its child processes are killed. Default: eight minutes, without
   * `silentMs`.
   */
  readonly timeoutMs?: number;
  /** Milliseconds without output after which it counts as hung and is killed. Default: no limit. */
  readonly silentMs?: number;
}

export interface CommandResult {
  readonly ok: boolean;
  readonly stdout: string;
  /** Both streams in order of arrival. If the command failed, the last line has the reason. */
  readonly output: string;
  readonly milliseconds: number;
}

const liveGroups = new Set<number>();
process.once("exit", () => liveGroups.forEach(killGroup));

function killGroup(processId: number): void {
  try {
    process.kill(-processId, "SIGKILL");
  } catch {
    // The process group has exited by itself.
  }
}

/** Puts node_modules/.bin, which has Node 24, first in PATH. Turns colours off, so that programs can parse the output. */
export function commandEnvironment(
  additions: Readonly<Record<string, string>> = {},
): Record<string, string | undefined> {
  const path = [join(repositoryRoot, "node_modules", ".bin"), process.env["PATH"] ?? ""].join(delimiter);
  return { ...process.env, PATH: path, NO_COLOR: "1", FORCE_COLOR: undefined, ...additions };
}

/** Runs a command without a terminal. Never rejects: a command that cannot be started counts as failed. */
export function runCommand(
  command: string,
  commandArguments: readonly string[],
  options: CommandOptions = {},
): Promise<CommandResult> {
  const started = performance.now();
  const { silentMs, timeoutMs = silentMs === undefined ? 480_000 : undefined } = options;
  const shown = [command, ...commandArguments].join(" ");
  return new Promise((resolve) => {
    let stdout = "";
    let output = "";
    let over: string | undefined;
    // A separate process group, so that a time-out also kills the children of npm or a shell.
    const child = spawn(command, commandArguments, {
      cwd: options.directory ?? repositoryRoot,
      env: commandEnvironment(options.environment),
      stdio: ["ignore", "pipe", "pipe"],
      detached: true,
    });
    const { pid } = child;
    if (pid !== undefined) liveGroups.add(pid);
    const watchdog = new Watchdog({ timeoutMs, silentMs }, (reason) => {
      over = reason;
      if (pid !== undefined) killGroup(pid);
    });
    child.stdout.setEncoding("utf8").on("data", (text: string) => {
      watchdog.heard();
      stdout += text;
      output += text;
    });
    child.stderr.setEncoding("utf8").on("data", (text: string) => {
      watchdog.heard();
      output += text;
    });
    const finish = (reason: string | null): void => {
      watchdog.stop();
      if (pid !== undefined) liveGroups.delete(pid);
      const closing =
        reason === null ? "" : `${output === "" || output.endsWith("\n") ? "" : "\n"}${shown}: ${reason}\n`;
      resolve({ ok: reason === null, stdout, output: output + closing, milliseconds: performance.now() - started });
    };
    child.once("error", (error) => finish(`could not be started: ${error.message}`));
    child.once("close", (code, signal) => {
      if (over !== undefined) finish(over);
      else if (code === 0) finish(null);
      else finish(signal === null ? `exit code ${code}` : `killed by ${signal}`);
    });
  });
}
