import { type ExitCode, exitCodes } from "../exit-codes.ts";
import { failureOf } from "../failure.ts";
import { askPerson } from "../inline/ask-person.ts";
import { type Conversation, InlineDesk } from "../inline/inline-desk.ts";
import { type LineRead, type NextOptions, ReadlineInput } from "../inline/line-input.ts";
import { userName } from "../job/user-name.ts";
import { waitingLines } from "../view/request-lines.ts";
import { columnsOf } from "../view/columns.ts";
import { paintFor } from "../view/styles.ts";
import { ChatAgent } from "./chat-agent.ts";
import { type ChatCommand, chatLineOf, helpLines } from "./chat-line.ts";
import { chatReports } from "./chat-reports.ts";
import type { ChatSetup } from "./chat-setup.ts";
import { ChatView } from "./chat-view.ts";

/**
 * A conversation between one agent and the person at a terminal, or a pipe.
 * Owns: what a typed line means. Does not own: the agent, the runtime, the process.
 *
 * Invariants
 * 1. A line is a message only while no turn is open. While something is asked it is the reply; commands work at any time.
 * 2. Nothing is said to the agent that was not typed as a message.
 */
export class ChatSession {
  readonly #setup: ChatSetup;
  readonly #input: ReadlineInput;
  readonly #view: ChatView;
  readonly #desk: InlineDesk;
  readonly #agent: ChatAgent;
  readonly #isTerminal: boolean;
  #isAsking = false;
  #isLeaving = false;
  #failure: ExitCode | undefined;

  constructor(setup: ChatSetup) {
    const { context, runtime, job } = setup;
    const { stdin, stdout, environment } = context;
    const { rootAgentId } = job;
    this.#setup = setup;
    this.#isTerminal = stdin.isTTY && stdout.isTTY;
    this.#input = new ReadlineInput({
      input: stdin,
      output: stdout,
      isTerminal: this.#isTerminal,
      onInterrupt: setup.onInterrupt,
      onUnasked: (line) => this.#isTerminal && this.#takeMeanwhile(line),
    });
    const paint = paintFor(this.#isTerminal ? environment : { NO_COLOR: "1" });
    this.#view = new ChatView({ write: (text) => this.#input.write(text), paint, rootAgentId });
    this.#desk = new InlineDesk({ runtime, rootAgentId, by: userName(), converse: () => this.#converse() });
    this.#agent = new ChatAgent(setup, this.#desk, (line) => this.say(line));
  }

  /** Talks until the person leaves or the pipe ends, and gives the exit code. */
  async run(): Promise<ExitCode> {
    const { runtime, job, isKnown, onTyped } = this.#setup;
    const subscription = runtime.subscribe((event) => {
      if (event.rootAgentId !== job.rootAgentId) return;
      this.#view.event(event);
      this.#desk.event(event);
    });
    try {
      this.#sayAll(job.header);
      if (this.#isTerminal) this.say("/help shows the commands, Ctrl-D leaves.");
      if (isKnown) await this.#agent.comeBack();
      while (!this.#isLeaving) {
        const read = await this.#input.next("> ");
        if (typeof read !== "object") break;
        onTyped();
        await this.#guarded(() => this.#take(read.line));
      }
      return this.#leave();
    } finally {
      subscription.unsubscribe();
      this.#input.close();
    }
  }

  /** Ends the open turn; false when there is none. */
  abort(): boolean {
    if (this.#agent.open === undefined) return false;
    void this.#guarded(() => this.#agent.abort());
    return true;
  }

  say(line: string): void {
    this.#view.say(line);
  }

  #sayAll(lines: readonly string[]): void {
    for (const line of lines) this.say(line);
  }

  /** What fails is told; the conversation goes on. */
  async #guarded(work: () => Promise<void>): Promise<void> {
    try {
      this.#failure = undefined;
      await work();
    } catch (error) {
      const failure = failureOf(error, this.#setup.context.environment);
      this.#failure = failure.exitCode;
      this.say(failure.text);
    }
  }

  async #take(line: string): Promise<void> {
    const typed = chatLineOf(line);
    if (typed.type === "command") await this.#command(typed.command);
    if (typed.type === "unknown") this.say(`There is no command /${typed.name}; /help shows those there are.`);
    if (typed.type === "message") await this.#agent.send(typed.text);
  }

  /** A line that was typed while a turn runs: true when there is nothing left of it to do. */
  #takeMeanwhile(line: string): boolean {
    const typed = chatLineOf(line);
    if (typed.type === "message") this.say("(sent when this turn has ended)");
    if (typed.type === "message") return false;
    void this.#guarded(() => this.#take(line));
    return true;
  }

  async #command(command: ChatCommand): Promise<void> {
    switch (command) {
      case "help":
        return this.#sayAll(helpLines());
      case "tree":
      case "budget":
        return await this.#report(command);
      case "requests":
        await this.#report(command);
        return await this.#agent.askAgain();
      case "pause":
        return await this.#agent.pause();
      case "resume":
        return await this.#agent.resume();
      case "abort":
        return await this.#agent.abort();
      case "exit":
        this.#isLeaving = true;
        // Work in flight comes to a safe point first; what only waits for this person can be left as it is.
        return this.#agent.open?.state === "running" && !this.#isAsking ? await this.#agent.pause() : undefined;
      default:
        command satisfies never;
    }
  }

  async #report(command: keyof typeof chatReports): Promise<void> {
    const { runtime, job } = this.#setup;
    if (!this.#agent.isThere) return this.say("Nothing has been said yet.");
    this.#sayAll(await chatReports[command](runtime, job.rootAgentId, columnsOf(this.#setup.context)));
  }

  #converse(): Conversation {
    const release = this.#view.hold();
    this.#isAsking = true;
    const say = (line: string): void => this.say(line);
    const input = { next: (prompt: string, options?: NextOptions) => this.#reply(prompt, options) };
    return {
      say,
      ask: (request, signal) => askPerson(input, say, request, signal),
      close: () => {
        this.#isAsking = false;
        release();
      },
    };
  }

  /** The next line that is no command of the chat. */
  async #reply(prompt: string, options: NextOptions = {}): Promise<LineRead> {
    for (;;) {
      const read = this.#isLeaving ? "ended" : await this.#input.next(prompt, options);
      if (typeof read !== "object") return read;
      this.#setup.onTyped();
      const typed = chatLineOf(read.line);
      if (typed.type !== "command") return read;
      await this.#guarded(() => this.#command(typed.command));
    }
  }

  #leave(): ExitCode {
    const { context, job, comeBack } = this.#setup;
    const { open, isThere, lastCode } = this.#agent;
    if (open?.state === "waiting") this.#sayAll(waitingLines(open.requests, context.invocation, job.store.words));
    if (isThere) this.#sayAll([`Carry on with: ${comeBack}`, ...job.store.remarks]);
    if (open?.state === "waiting") return exitCodes.waiting;
    if (open !== undefined) return exitCodes.interrupted;
    return this.#isTerminal ? exitCodes.success : (this.#failure ?? lastCode);
  }
}
