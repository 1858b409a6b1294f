import { randomUUID } from "node:crypto";
import type { Runtime } from "../../runtime/index.ts";
import { userName } from "../cli-context.ts";
import { type ExitCode, exitCodes, failureOf } from "../failure.ts";
import { askPerson, type Conversation, TerminalRequests } from "../inline/terminal-requests.ts";
import { type LineInput, type LineRead, type NextOptions, ReadlineInput } from "../inline/line-input.ts";
import { findAgent } from "../job/find-agent.ts";
import { allRequests, placedRequests } from "../job/find-request.ts";
import { readBudgets, readStory } from "../job/story.ts";
import { summaryLines } from "../view/agent-rows.ts";
import { budgetLines } from "../view/budget-lines.ts";
import { othersDecidingLines, requestTable, waitingLines } from "../view/request-lines.ts";
import { columnsOf } from "../view/table.ts";
import { paintFor } from "../view/terminal-text.ts";
import { ChatAgent, type ChatSetup } from "./chat-agent.ts";
import { ChatView } from "./chat-view.ts";

/**
 * A conversation between one agent and a person at a terminal, or a pipe.
 * Owns: the interpretation of a typed line. Does not own: the agent, the runtime, the process.
 *
 * Invariants
 * 1. A line is a message; while a turn runs, that turn gets it. While a request is asked, the line is the reply. Commands work at any
 *    time.
 * 2. Only typed messages are sent to the agent.
 */
export class ChatSession {
  readonly #setup: ChatSetup;
  readonly #input: LineInput;
  readonly #view: ChatView;
  readonly #desk: TerminalRequests;
  readonly #agent: ChatAgent;
  readonly #isTerminal: boolean;
  /** Lines that were typed while no turn was open and none was asked for: they never answer a question that is asked later. */
  readonly #early: string[] = [];
  #isAsking = false;
  readonly #leaving = new AbortController();
  /** Whether another process continues the conversation. */
  #isSuspended = false;
  #failure: ExitCode | undefined;

  constructor(setup: ChatSetup) {
    const { context, runtime, job, link } = setup;
    const { stdin, stdout, environment } = context;
    const { rootAgentId } = job;
    this.#setup = setup;
    this.#isTerminal = stdin.isTTY && stdout.isTTY;
    this.#input =
      link !== undefined && !this.#isTerminal
        ? link.lines(stdout)
        : new ReadlineInput({
            input: stdin,
            output: stdout,
            isTerminal: this.#isTerminal,
            onInterrupt: setup.onInterrupt,
            onUnasked: (line) => this.#isTerminal && this.#takeMeanwhile(line),
            ignoresSuspend: link !== undefined,
          });
    const paint = paintFor(this.#isTerminal ? environment : { NO_COLOR: "1" });
    this.#view = new ChatView({
      write: (text) => this.#input.write(text),
      paint,
      rootAgentId,
      columns: () => columnsOf(context),
    });
    this.#desk = new TerminalRequests({
      runtime,
      rootAgentId,
      by: userName(),
      commandsFor: (request) => othersDecidingLines(request, context.invocation, job.store),
      converse: () => this.#converse(),
    });
    this.#agent = new ChatAgent(setup, this.#desk, (line) => this.say(line));
  }

  /** Runs until the person leaves or the pipe ends. Returns the exit code. */
  async run(): Promise<ExitCode> {
    const { runtime, job, isKnown, onTyped, link } = this.#setup;
    const subscription = runtime.subscribe((event) => {
      if (event.rootAgentId !== job.rootAgentId) return;
      // A reload is told already.
      if (link !== undefined && event.type === "warning" && event.code === "definition_changed") return;
      this.#view.event(event);
      this.#desk.event(event);
    });
    try {
      this.#greet();
      if (isKnown) await this.#guarded(() => this.#agent.comeBack(), { isFatal: true });
      else for (const message of link?.start.unsent ?? []) await this.#guarded(() => this.#agent.send(message));
      while (!this.#leaving.signal.aborted && !this.#isSuspended) {
        const early = this.#early.shift();
        const read =
          early === undefined ? await this.#input.next("> ", { signal: this.#leaving.signal }) : { line: early };
        if (typeof read !== "object") break;
        onTyped();
        await this.#guarded(() => this.#take(read.line));
      }
      return this.#isSuspended ? exitCodes.success : this.#leave();
    } finally {
      subscription.unsubscribe();
      this.#input.close();
    }
  }

  /** Aborts the open turn; returns false without one. */
  abort(): boolean {
    if (this.#agent.open === undefined) return false;
    void this.#guarded(() => this.#agent.abort());
    return true;
  }

  say(line: string): void {
    if (!this.#isSuspended) this.#view.say(line);
  }

  /** Ends the input because another process will continue the conversation; returns the half-typed line. */
  suspend(reason: string): string {
    if (this.#agent.open?.state === "running" && !this.#isAsking) this.say(reason);
    const draft = this.#input.draft();
    this.#isSuspended = true;
    this.#input.close();
    for (const line of this.#early.splice(0)) {
      const typed = chatLineOf(line);
      if (typed.type === "message") this.#setup.link?.sending({ key: randomUUID(), text: typed.text });
    }
    return draft;
  }

  draft(): string {
    return this.#input.draft();
  }

  #greet(): void {
    const { job, link } = this.#setup;
    if (link?.start.isFirst !== false) {
      this.#sayAll(job.header);
      if (this.#isTerminal) this.say("/help shows the commands, Ctrl-D leaves.");
    }
    if (link === undefined) return;
    this.say(link.greeting);
    this.#input.restore(link.start.draft);
  }

  #sayAll(lines: readonly string[]): void {
    for (const line of lines) this.say(line);
  }

  /** Shows an error; the conversation continues unless it is fatal. */
  async #guarded(work: () => Promise<void>, { isFatal = false } = {}): Promise<void> {
    try {
      this.#failure = undefined;
      await work();
    } catch (error) {
      // The runtime has ended for another process to continue.
      if (this.#isSuspended) return;
      if (isFatal) throw error;
      const failure = failureOf(error, this.#setup.context.environment);
      this.#failure = failure.exitCode;
      this.say(failure.text);
    }
  }

  async #take(line: string): Promise<void> {
    const typed = chatLineOf(line);
    if (typed.type === "command") await this.#command(typed.command);
    if (typed.type === "unknown") this.say(`There is no command /${typed.name}; /help lists the commands.`);
    if (typed.type === "message") await this.#agent.send({ key: randomUUID(), text: typed.text });
  }

  /** Handles a line typed while a turn runs: a message is given to the turn. */
  #takeMeanwhile(line: string): boolean {
    if (this.#agent.open === undefined) {
      this.#early.push(line);
      return true;
    }
    const typed = chatLineOf(line);
    const take = (): Promise<void> =>
      typed.type === "message" ? this.#agent.steer({ key: randomUUID(), text: typed.text }) : this.#take(line);
    void this.#guarded(take);
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
        this.#leaving.abort();
        // Running work is first paused at a safe point. A turn that only waits for this person is left unchanged.
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

  /** Reads the next line that is not a command of the chat. */
  async #reply(prompt: string, options: NextOptions = {}): Promise<LineRead> {
    for (;;) {
      const read = this.#leaving.signal.aborted ? "ended" : await this.#input.next(prompt, options);
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
    if (isThere) this.#sayAll([`Resume with: ${comeBack}`, ...job.store.remarks]);
    if (open?.state === "waiting") return exitCodes.waiting;
    if (open !== undefined) return exitCodes.interrupted;
    return this.#isTerminal ? exitCodes.success : (this.#failure ?? lastCode);
  }
}

/** The chat's commands, typed after a `/`, with their help. */
const chatCommands = {
  pause: "pause the agent and its subagents at the next safe point",
  resume: "end the pause",
  abort: "end the open turn",
  budget: "show the accounts with their limits",
  tree: "show the agents with their figures",
  requests: "show open requests; asks again about postponed ones",
  help: "show this list",
  exit: "leave; nothing is lost",
} as const;
type ChatCommand = keyof typeof chatCommands;

/** A typed line, parsed. */
type ChatLine =
  | { readonly type: "message"; readonly text: string }
  | { readonly type: "command"; readonly command: ChatCommand }
  | { readonly type: "unknown"; readonly name: string }
  | { readonly type: "blank" };

/** Parses a typed line. `//` at the start stands for a `/` of the message. */
export function chatLineOf(line: string): ChatLine {
  const text = line.trim();
  if (text === "") return { type: "blank" };
  if (text.startsWith("//")) return { type: "message", text: text.slice(1) };
  if (!text.startsWith("/")) return { type: "message", text };
  const [name = ""] = text.slice(1).split(/\s/);
  return isCommand(name) ? { type: "command", command: name } : { type: "unknown", name };
}

function isCommand(name: string): name is ChatCommand {
  return Object.hasOwn(chatCommands, name);
}

export function helpLines(): string[] {
  const lines = Object.entries(chatCommands).map(([name, what]) => `  /${name.padEnd(9)} ${what}`);
  return [...lines, "Anything else is a message; one that begins with / is typed with //."];
}

/** The output of /tree, /budget and /requests, read from the store. */
const chatReports = {
  async tree(runtime: Runtime, rootAgentId: string, width: number): Promise<string[]> {
    const { agents, accounts } = await readStory(runtime.stores, rootAgentId, { hasTexts: false });
    return summaryLines(agents, { accounts, now: Date.now() }, width);
  },

  async budget(runtime: Runtime, rootAgentId: string, width: number): Promise<string[]> {
    const tree = await readBudgets(runtime.stores, await findAgent(runtime.stores, rootAgentId));
    return budgetLines({ ...tree, now: Date.now(), width });
  },

  async requests(runtime: Runtime, rootAgentId: string, width: number): Promise<string[]> {
    const open = await allRequests(runtime.stores, { rootAgentId, status: "open" });
    if (open.length === 0) return ["Nothing waits for a decision or an answer."];
    return requestTable(await placedRequests(runtime.stores, open), { now: Date.now(), width });
  },
} as const;
