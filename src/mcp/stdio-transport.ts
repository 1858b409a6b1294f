import { type ChildProcess, spawn } from "node:child_process";
import { existsSync } from "node:fs";
import type { Duplex, Readable } from "node:stream";
import type { JSONRPCMessage, Transport } from "@modelcontextprotocol/client";
import type { McpSdk } from "./mcp-sdk.ts";
import { McpServerError } from "./mcp-server-error.ts";

/** A program to start. */
export interface StdioProgram {
  readonly command: string;
  readonly args: readonly string[];
  /** All variables of the program. */
  readonly env: Readonly<Record<string, string>>;
  readonly cwd: string | undefined;
  /** Largest message in bytes. */
  readonly maxBytes: number;
}

const SHELL = "/bin/sh";

/**
 * Runs the program `"$@"` and ends it when fd 3 ends, which happens when this process closes it or dies in any way. The shell is the
 * leader of a process group of its own; programs that the server has started are in it and end with the server. A server gets 2
 * seconds after the end of its stdin, and 2 more after SIGTERM. If the runtime cannot make the shell a leader, there is no group
 * `-$$`, and only the server itself is ended.
 *
 * stdin is passed on as fd 4, because a shell gives background programs no stdin. The last line to fd 3 is the exit code.
 */
const SUPERVISOR = `
trap : TERM
exec 4<&0 </dev/null
"$@" <&4 3<&- 4<&- &
server=$!
exec 4<&- >/dev/null 2>&1
(
  true <&3 || exit
  trap '' TERM
  PATH="$PATH:/bin:/usr/bin"
  while read -r _ <&3; do :; done
  sleep 2
  kill -s TERM -- "-$$" || kill -s TERM "$server"
  sleep 2
  kill -s KILL -- "-$$" || kill -s KILL "$server"
) &
wait "$server"
code=$?
while kill -s 0 "$server"; do wait "$server"; code=$?; done
echo "$code" >&3
kill -s KILL -- "-$$"
`;

/** Longest text of the program's stderr that is kept for an error, in UTF-16 units. */
const LONGEST_STDERR = 1_000;
/** After the supervisor has ended, the rest of the output is read for at most this many milliseconds. */
const LAST_OUTPUT_MS = 500;
/** The supervisor ends a program within 4 seconds; after this many milliseconds its group is killed from here. */
const ENDING_MS = 6_000;
const NEW_LINE = 10;

/** Whether programs are supervised on this machine: not on Windows, and not without a shell. */
export function isSupervised(): boolean {
  return process.platform !== "win32" && existsSync(SHELL);
}

/**
 * Runs a server as a program and exchanges messages with it on stdin and stdout, one per line. Owns the program's processes. Invariants:
 * 1. The program ends when this transport is closed and when this process ends, even by SIGKILL; with it end the programs that it has
 *    started and that have not left its process group.
 * 2. `onclose` is called once, at the latest `LAST_OUTPUT_MS` after the program has ended, even if another process keeps its stdout.
 * 3. Nothing of it keeps this process running after `unref()`.
 *
 * The protocol's client recognises a program by the fields `pid` and `stderr`.
 */
export class StdioTransport implements Transport {
  onclose: Transport["onclose"];
  onerror: Transport["onerror"];
  onmessage: Transport["onmessage"];
  readonly stderr = null;
  readonly #sdk: McpSdk;
  readonly #program: StdioProgram;
  #child: ChildProcess | undefined;
  #isOver = false;
  readonly #over = Promise.withResolvers<void>();
  /** Output after the last complete line. */
  #rest: Buffer[] = [];
  #restBytes = 0;
  #errorOutput = "";
  #exitCode = "";
  #fault = "";
  #lastOutput: NodeJS.Timeout | undefined;

  constructor(sdk: McpSdk, program: StdioProgram) {
    this.#sdk = sdk;
    this.#program = program;
  }

  get pid(): number | null {
    return this.#child?.pid ?? null;
  }

  /** How the program ended, and what it wrote to stderr; empty if there is nothing to report. */
  get lastWords(): string {
    const code = this.#exitCode.trim();
    const { command } = this.#program;
    const isMissing = code === "126" || code === "127";
    const cause = isMissing ? ` (the program ${JSON.stringify(command)} was not found or cannot be executed)` : "";
    const text = this.#errorOutput.trim();
    const ending = code === "" ? "" : `it ended with code ${code}${cause}`;
    const output = text === "" ? "" : `it wrote to stderr: ${text}`;
    return [this.#fault, ending, output].filter((part) => part !== "").join("; ");
  }

  async start(): Promise<void> {
    const { command, args, env, cwd } = this.#program;
    const child = spawn(SHELL, ["-c", SUPERVISOR, "troupe-mcp", command, ...args], {
      env,
      ...(cwd === undefined ? {} : { cwd }),
      stdio: ["pipe", "pipe", "pipe", "pipe"],
      detached: true,
    });
    this.#child = child;
    for (const stream of child.stdio) stream?.on("error", () => undefined);
    child.stdout?.on("data", (chunk: Buffer) => this.#read(chunk));
    child.stderr?.on("data", (chunk: Buffer) => {
      this.#errorOutput = `${this.#errorOutput}${chunk.toString()}`.slice(-LONGEST_STDERR);
    });
    (child.stdio[3] as Readable | null)?.on("data", (chunk: Buffer) => {
      this.#exitCode = `${this.#exitCode}${chunk.toString()}`.slice(-10);
    });
    child.once("exit", () => {
      this.#lastOutput = setTimeout(() => this.#end(), LAST_OUTPUT_MS);
    });
    child.once("close", () => this.#end());
    const started = Promise.withResolvers<void>();
    child.once("spawn", () => started.resolve());
    child.once("error", (error) => {
      const where = cwd === undefined ? "" : ` in the folder ${JSON.stringify(cwd)}`;
      started.reject(new McpServerError(`the program cannot be started${where}: ${error.message}`));
      this.#end();
    });
    await started.promise;
  }

  async send(message: JSONRPCMessage): Promise<void> {
    const { SdkError, SdkErrorCode, serializeMessage } = this.#sdk.client;
    const stdin = this.#child?.stdin;
    if (this.#isOver || !stdin?.writable) throw new SdkError(SdkErrorCode.NotConnected, "Not connected");
    if (stdin.write(serializeMessage(message))) return;
    // A program that ends does not drain its input.
    const drained = Promise.withResolvers<void>();
    stdin.once("drain", drained.resolve);
    await Promise.race([drained.promise, this.#over.promise]);
  }

  /** Ends the program; resolves when it has ended. */
  async close(): Promise<void> {
    const child = this.#child;
    if (child === undefined || this.#isOver) return;
    this.ref();
    child.stdin?.end();
    (child.stdio[3] as Duplex | null)?.end();
    const late = setTimeout(() => this.#kill(), ENDING_MS);
    await this.#over.promise;
    clearTimeout(late);
  }

  #kill(): void {
    const { pid, exitCode, signalCode } = this.#child ?? {};
    if (pid === undefined || exitCode !== null || signalCode !== null) return;
    try {
      process.kill(-pid, "SIGKILL");
    } catch {
      this.#child?.kill("SIGKILL");
    }
  }

  /** The program keeps this process running again, as at first. */
  ref(): void {
    this.#keep("ref");
  }

  /** The program does not keep this process running. */
  unref(): void {
    this.#keep("unref");
  }

  #keep(what: "ref" | "unref"): void {
    this.#child?.[what]();
    // Pipes to a process are sockets.
    for (const stream of this.#child?.stdio ?? []) (stream as Partial<Record<"ref" | "unref", () => void>>)?.[what]?.();
  }

  #end(): void {
    if (this.#isOver) return;
    this.#isOver = true;
    clearTimeout(this.#lastOutput);
    this.#rest = [];
    for (const stream of this.#child?.stdio ?? []) stream?.destroy();
    this.#over.resolve();
    this.onclose?.();
  }

  #read(chunk: Buffer): void {
    let from = 0;
    for (let at = chunk.indexOf(NEW_LINE); at >= 0 && !this.#isOver; at = chunk.indexOf(NEW_LINE, from)) {
      this.#rest.push(chunk.subarray(from, at));
      from = at + 1;
      const line = Buffer.concat(this.#rest).toString();
      this.#rest = [];
      this.#restBytes = 0;
      this.#readLine(line);
    }
    if (from === chunk.length || this.#isOver) return;
    this.#rest.push(chunk.subarray(from));
    this.#restBytes += chunk.length - from;
    if (this.#restBytes <= this.#program.maxBytes) return;
    this.#fault = `it sent more than ${this.#program.maxBytes} bytes at once`;
    this.#kill();
    this.#end();
  }

  /** Lines that are not JSON, such as logs, are skipped. */
  #readLine(line: string): void {
    let message: JSONRPCMessage;
    try {
      message = this.#sdk.client.deserializeMessage(line);
    } catch (error) {
      if (!(error instanceof SyntaxError)) this.onerror?.(error instanceof Error ? error : new Error(String(error)));
      return;
    }
    this.onmessage?.(message);
  }
}
