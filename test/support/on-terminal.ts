import { spawn } from "node:child_process";
import { join } from "node:path";
import { stripVTControlCharacters } from "node:util";
import { onTestFinished } from "vitest";
import { commandEnvironment, repositoryRoot, sourceCondition } from "../../scripts/run-command.ts";

export interface TerminalCommand {
  /** The exit code; `null` after a signal. */
  readonly ended: Promise<number | null>;
  /** Resolves with the match once one of the two outputs contains such a text, without the control characters. */
  said(pattern: RegExp): Promise<RegExpExecArray>;
  signal(signal: NodeJS.Signals): void;
  /** Types a line. */
  type(line: string): void;
  /** Types without ending the line. */
  press(keys: string): void;
  /** Ends the input, as Ctrl-D does. */
  endInput(): void;
}

/** Runs a command with input and output that look like a terminal, and without a model key. It is killed when the test ends. */
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
    stdio: ["pipe", "pipe", "pipe"],
  });
  onTestFinished(() => void command.kill("SIGKILL"));
  // Input to a process that has just ended is lost.
  command.stdin.on("error", () => {});
  const said = ["", ""];
  const listeners = new Set<() => void>();
  for (const [index, stream] of [command.stdout, command.stderr].entries()) {
    stream.setEncoding("utf8").on("data", (text: string) => {
      said[index] += text;
      for (const listener of listeners) listener();
    });
  }
  const ended = new Promise<number | null>((resolve) => void command.once("exit", resolve));
  return {
    ended,
    signal: (signal) => void command.kill(signal),
    type: (line) => void command.stdin.write(`${line}\n`),
    press: (keys) => void command.stdin.write(keys),
    endInput: () => void command.stdin.end(),
    said: (pattern) =>
      new Promise((resolve, reject) => {
        const look = (): void => {
          const match = said.map((text) => pattern.exec(stripVTControlCharacters(text))).find((one) => one !== null);
          if (match) resolve(match);
        };
        listeners.add(look);
        look();
        void ended.then((code) =>
          reject(new Error(`It ended with ${code} before it said ${pattern}.\n${said.join("\n")}`)),
        );
      }),
  };
}
