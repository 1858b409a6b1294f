import { type ChildProcess, fork, spawnSync } from "node:child_process";
import type { CliContext } from "../cli-context.ts";
import { type DevMessage, type SessionMessage, sessionMessageSchema, type SessionStart } from "./dev-messages.ts";
import { type CalledSession, errorOf } from "./remote-actor.ts";

/** How the process of a conversation ended. */
export type SessionEnd =
  | { readonly type: "left"; readonly exitCode: number }
  | { readonly type: "failed"; readonly text: string; readonly exitCode: number; readonly isFile: boolean }
  | { readonly type: "died"; readonly how: string; readonly wasReady: boolean };

interface SessionProcessOptions {
  readonly context: CliContext;
  readonly start: SessionStart;
  /** Whether the person types into the process itself; otherwise its lines come over the channel. */
  readonly isTerminal: boolean;
  readonly take: (message: SessionMessage) => void;
}

/** Time for a process to end by itself once its work is stored, in milliseconds. */
const PARTING_MS = 2_000;

/**
 * The process that runs the agents of `troupe dev` and the conversation with one of them.
 * Owns: the process, the calls that wait for its answers, the mode of the terminal. Does not own: files, store, conversation.
 *
 * Invariants
 * 1. `ended` resolves once the process is gone and all it has said was taken.
 * 2. A call is answered, or rejects when the process ends.
 * 3. The terminal is left as it was found, however the process ends.
 */
export class SessionProcess implements CalledSession {
  readonly ended: Promise<SessionEnd>;
  readonly #child: ChildProcess;
  readonly #take: SessionProcessOptions["take"];
  readonly #calls = new Map<number, PromiseWithResolvers<unknown>>();
  readonly #terminal: string | undefined;
  #lastCall = 0;
  #ready: Extract<SessionMessage, { type: "ready" }> | undefined;
  #said: SessionEnd | undefined;

  constructor({ context, start, isTerminal, take }: SessionProcessOptions) {
    const { invocation, directory, environment } = context;
    this.#take = take;
    this.#terminal = isTerminal ? terminalMode() : undefined;
    this.#child = fork(invocation.main, ["dev-session"], {
      cwd: directory,
      env: { ...environment },
      stdio: [isTerminal ? "inherit" : "ignore", "inherit", "inherit", "ipc"],
      serialization: "advanced",
    });
    this.ended = this.#end();
    this.#child.on("message", (message) => {
      const parsed = sessionMessageSchema.safeParse(message);
      if (parsed.success) this.#heard(parsed.data);
    });
    this.send({ type: "start", start });
  }

  get isReady(): boolean {
    return this.#ready !== undefined;
  }

  get definitions(): readonly string[] {
    return this.#ready?.definitions ?? [];
  }

  get models(): readonly string[] {
    return this.#ready?.models ?? [];
  }

  send(message: DevMessage): void {
    // A process that is just ending does not take it; `ended` tells.
    if (this.#child.connected) this.#child.send(message, () => undefined);
  }

  async call(method: string, args: readonly unknown[]): Promise<unknown> {
    const call = Promise.withResolvers<unknown>();
    this.#lastCall += 1;
    this.#calls.set(this.#lastCall, call);
    this.send({ type: "call", id: this.#lastCall, method, args });
    return await call.promise;
  }

  interrupt(): void {
    this.#child.kill("SIGINT");
  }

  kill(): void {
    this.#child.kill("SIGKILL");
  }

  /** Ends the process at a safe point. Returns whether it stopped in time; otherwise it was killed. */
  async drain(timeoutMs: number, reason: string): Promise<boolean> {
    if (!this.isReady) {
      // No turn runs before.
      this.kill();
      await this.ended;
      return true;
    }
    let isInTime = true;
    const timer = setTimeout(() => {
      isInTime = false;
      this.kill();
    }, timeoutMs + PARTING_MS);
    this.send({ type: "drain", timeoutMs, reason });
    await this.ended;
    clearTimeout(timer);
    return isInTime;
  }

  #heard(message: SessionMessage): void {
    if (message.type === "ready") this.#ready = message;
    if (message.type === "left" || message.type === "failed") this.#said = message;
    if (message.type === "answer") {
      const call = this.#calls.get(message.id);
      this.#calls.delete(message.id);
      if (message.thrown === undefined) call?.resolve(message.value);
      else call?.reject(errorOf(message.thrown));
    }
    this.#take(message);
  }

  async #end(): Promise<SessionEnd> {
    const exited = Promise.withResolvers<string>();
    const disconnected = Promise.withResolvers<undefined>();
    this.#child.once("exit", (code, signal) => exited.resolve(signal ?? `exit code ${code}`));
    this.#child.once("error", ({ message }) => {
      exited.resolve(message);
      disconnected.resolve(undefined);
    });
    // Its last messages are read before.
    this.#child.once("disconnect", () => disconnected.resolve(undefined));
    const how = await exited.promise;
    await disconnected.promise;
    const wasReady = this.isReady;
    this.#ready = undefined;
    for (const { reject } of this.#calls.values()) {
      reject(errorOf({ code: "unsupported", message: `the agents' process has ended (${how}); try again` }));
    }
    this.#calls.clear();
    if (this.#terminal !== undefined && this.#said === undefined) stty(this.#terminal);
    return this.#said ?? { type: "died", how, wasReady };
  }
}

/** The settings of the terminal, which a killed process cannot restore. `undefined` without `stty`, as on Windows. */
function terminalMode(): string | undefined {
  return stty("-g");
}

function stty(setting: string): string | undefined {
  const { status, stdout } = spawnSync("stty", [setting], { stdio: ["inherit", "pipe", "ignore"], encoding: "utf8" });
  return status === 0 ? stdout.trim() : undefined;
}
