import { spawn } from "node:child_process";
import { join } from "node:path";
import { onTestFinished } from "vitest";
import { commandEnvironment, repositoryRoot, sourceCondition } from "../../scripts/run-command.ts";

export interface TerminalCommand {
  /** The exit code; null after a signal. */
  readonly ended: Promise<number | null>;
  /** Resolves with the match once standard error has such a text. */
  said(pattern: RegExp): Promise<RegExpExecArray>;
  signal(signal: NodeJS.Signals): void;
}

/** A command whose input and output look like a terminal to it, without a key for a model. It is killed when the test ends. */
export function startOnTerminal(
  directory: string,
  words: readonly string[],
  environment: Readonly<Record<string, string>> = {},
): TerminalCommand {
  const terminal = "for (const stream of [process.stdin, process.stdout]) stream.isTTY = true;";
  const options = [
    `--conditions=${sourceCondition}`,
    "--import",
    `data:text/javascript,${encodeURIComponent(terminal)}`,
    join(repositoryRoot, "src/cli/main.ts"),
  ];
  const command = spawn(process.execPath, [...options, ...words], {
    cwd: directory,
    env: commandEnvironment({ OPENAI_API_KEY: "", OPENAI_BASE_URL: "", npm_lifecycle_event: "", ...environment }),
    stdio: ["pipe", "ignore", "pipe"],
  });
  onTestFinished(() => void command.kill("SIGKILL"));
  let errors = "";
  const listeners = new Set<() => void>();
  command.stderr.setEncoding("utf8").on("data", (text: string) => {
    errors += text;
    for (const listener of listeners) listener();
  });
  const ended = new Promise<number | null>((resolve) => void command.once("exit", resolve));
  return {
    ended,
    signal: (signal) => void command.kill(signal),
    said: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const match = pattern.exec(errors);
          if (match) resolve(match);
        };
        listeners.add(look);
        look();
        void ended.then((code) => reject(new Error(`It ended with ${code} before it said ${pattern}.\n${errors}`)));
      }),
  };
}
