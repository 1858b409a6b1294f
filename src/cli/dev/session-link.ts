import { InvalidInputError } from "../../errors/index.ts";
import type { Runtime } from "../../runtime/index.ts";
import { userName } from "../cli-context.ts";
import type { LineInput, LineRead } from "../inline/line-input.ts";
import { watchLoading } from "../job/loaded-files.ts";
import type { DevMessage, SessionMessage, SessionStart, TypedMessage } from "./dev-messages.ts";
import { SessionLiveChannel } from "./live-channels.ts";
import { calledActor, thrownOf } from "./remote-actor.ts";

/** The conversation, as far as `troupe dev` uses it. */
interface LinkedChat {
  readonly runtime: Runtime;
  /** Ends the input; returns the half-typed line. `reason` is shown while a turn runs. */
  suspend(reason: string): string;
  /** The half-typed line. */
  draft(): string;
}

/**
 * The channel of a conversation to its parent, `troupe dev`.
 * Owns: the lines of a pipe that were asked for, and the number of loaded files. Does not own: the chat, the runtime.
 */
export class SessionLink {
  readonly start: SessionStart;
  readonly live: SessionLiveChannel;
  #isLoaded = false;
  #isReady = false;
  readonly #files = new Set<string>();
  readonly #drained = Promise.withResolvers<undefined>();
  #isSuspended = false;
  /** The one that came last gets the next line. */
  readonly #readers: ((read: LineRead) => void)[] = [];
  /** Lines that arrived after their reader was gone. */
  readonly #lines: LineRead[] = [];

  constructor(start: SessionStart) {
    this.start = start;
    this.live = new SessionLiveChannel((message) => this.#send(message), start.followed);
    // Once its parent was killed, this process would never end.
    process.once("disconnect", () => process.exit(1));
    const isTold = watchLoading((file) => {
      this.#files.add(file.path);
      this.#send({ type: "file", ...file });
    });
    if (!isTold && start.isFirst) {
      process.stderr.write(
        `Node ${process.version.slice(1)} does not report imported files, so only ${start.file} is watched; Node 22.15 or later reports them.\n`,
      );
    }
  }

  /** Paths of the files that were loaded so far. */
  get files(): readonly string[] {
    return [...this.#files];
  }

  /** Whether the agent file was loaded. */
  get isLoaded(): boolean {
    return this.#isLoaded;
  }

  get isReady(): boolean {
    return this.#isReady;
  }

  /** Resolves once all work is stored because the parent wants this process to end. */
  get drained(): Promise<undefined> {
    return this.#drained.promise;
  }

  /** The first line of a process that continues a conversation. */
  get greeting(): string {
    const count = this.#files.size + this.start.otherFiles;
    return `${this.start.isFirst ? "Loaded" : "Reloaded"} ${this.start.file} (${count} ${count === 1 ? "file" : "files"} watched)`;
  }

  loaded(): void {
    this.#isLoaded = true;
  }

  /** Takes commands of the parent from now on. */
  ready(chat: LinkedChat): void {
    this.#isReady = true;
    const called = calledActor(chat.runtime, userName());
    const take = (message: DevMessage): void => {
      if (message.type === "drain") void this.#drain(chat, message);
      else if (message.type === "line") this.#read(message.line === null ? "ended" : { line: message.line });
      else if (message.type === "call") void this.#answer(called.call(message.method, message.args), message.id);
      else if (message.type !== "start") this.live.take(message);
    };
    process.on("message", (message) => take(message as DevMessage));
    // Code of the person may end the process while they type.
    process.once("exit", () => {
      if (!this.#isSuspended) this.#sendDraft(chat.draft());
    });
    this.#send({ type: "ready", definitions: [...called.definitions], models: [...called.models] });
  }

  failed(text: string, exitCode: number): void {
    this.#send({ type: "failed", text, exitCode, isFile: !this.#isLoaded });
  }

  left(exitCode: number): void {
    this.#send({ type: "left", exitCode });
  }

  taken(): void {
    this.#send({ type: "taken" });
  }

  sending(message: TypedMessage): void {
    this.#send({ type: "sending", message });
  }

  sent(key: string): void {
    this.#send({ type: "sent", key });
  }

  /** Lines of a pipe that the parent reads: one at a time, so that none is lost with this process. */
  lines(output: NodeJS.WritableStream): LineInput {
    return {
      next: async (prompt, { signal } = {}) => {
        const echoed = (read: LineRead): LineRead => {
          if (typeof read === "object") output.write(`${prompt}${read.line}\n`);
          return read;
        };
        if (signal?.aborted === true) return "aborted";
        const kept = this.#lines.shift();
        if (kept !== undefined) return echoed(kept);
        const { promise, resolve } = Promise.withResolvers<LineRead>();
        const onAbort = (): void => resolve("aborted");
        signal?.addEventListener("abort", onAbort, { once: true });
        this.#readers.push(resolve);
        this.#send({ type: "next" });
        const read = await promise;
        this.#remove(resolve);
        signal?.removeEventListener("abort", onAbort);
        return echoed(read);
      },
      write: (text) => void output.write(text),
      draft: () => "",
      restore: () => undefined,
      close: () => {
        for (const reader of this.#readers) reader("ended");
      },
    };
  }

  async #drain(chat: LinkedChat, { timeoutMs, reason }: Extract<DevMessage, { type: "drain" }>): Promise<void> {
    this.#isSuspended = true;
    this.#sendDraft(chat.suspend(reason));
    const { left } = await chat.runtime.drain({ timeoutMs });
    this.#send({ type: "drained", left });
    this.#drained.resolve(undefined);
  }

  #read(read: LineRead): void {
    const reader = this.#readers.at(-1);
    if (reader === undefined) return void this.#lines.push(read);
    this.#remove(reader);
    reader(read);
    // One line was sent for all that have asked.
    if (this.#readers.length > 0) this.#send({ type: "next" });
  }

  #remove(reader: (read: LineRead) => void): void {
    const index = this.#readers.indexOf(reader);
    if (index >= 0) this.#readers.splice(index, 1);
  }

  #sendDraft(text: string): void {
    const unread = this.#lines.flatMap((read) => (typeof read === "object" ? [read.line] : []));
    this.#send({ type: "draft", text, unread });
  }

  async #answer(answer: Promise<unknown>, id: number): Promise<void> {
    try {
      this.#send({ type: "answer", id, value: await answer });
    } catch (error) {
      this.#send({ type: "answer", id, value: undefined, thrown: thrownOf(error) });
    }
  }

  #send(message: SessionMessage): void {
    // The parent is gone; "disconnect" ends this process.
    if (process.connected) process.send?.(message, undefined, undefined, () => undefined);
  }
}

/** Waits for the parent's start message. Throws `InvalidInputError` without a parent. */
export async function linkToParent(): Promise<SessionLink> {
  if (process.send === undefined) {
    throw new InvalidInputError("dev-session is started by `troupe dev FILE`; run that instead");
  }
  const { promise, resolve } = Promise.withResolvers<SessionStart>();
  process.once("message", (message: DevMessage) => {
    if (message.type === "start") resolve(message.start);
  });
  return new SessionLink(await promise);
}
