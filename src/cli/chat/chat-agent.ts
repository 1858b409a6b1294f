import type { Runtime, Agent, LimitStop, TurnRest, TurnResult } from "../../runtime/index.ts";
import { type Message, textOf, type AgentRequest } from "../../state/index.ts";
import { type CliContext, userName } from "../cli-context.ts";
import { type ExitCode, exitCodeOf, exitCodes } from "../failure.ts";
import type { TerminalRequests } from "../inline/terminal-requests.ts";
import type { TypedMessage } from "../dev/dev-messages.ts";
import type { SessionLink } from "../dev/session-link.ts";
import type { Job } from "../job/job.ts";
import { treeAtRest } from "../job/tree-events.ts";
import { formatNumberOf } from "../view/format.ts";
import { oneLine } from "../view/terminal-text.ts";
import { truncate } from "../view/text-width.ts";

/** The open turn: running, paused, or waiting for a request that was postponed. */
type OpenTurn =
  | { readonly turnId: string; readonly state: "running" | "paused" }
  | { readonly turnId: string; readonly state: "waiting"; readonly requests: readonly AgentRequest[] };

type AgentSetup = Pick<ChatSetup, "runtime" | "job" | "link">;

/** The agent of the chat and its open turn. */
export class ChatAgent {
  readonly #setup: AgentSetup;
  readonly #desk: TerminalRequests;
  readonly #say: (line: string) => void;
  #agent: Agent | undefined;
  #open: OpenTurn | undefined;
  /** Turns that typed lines have opened behind the open one. */
  readonly #queued: string[] = [];
  #lastCode: ExitCode = exitCodes.success;
  /** The pause that the person requested, until it ends. */
  #pausing: Promise<void> | undefined;

  constructor(setup: AgentSetup, desk: TerminalRequests, say: (line: string) => void) {
    this.#setup = setup;
    this.#desk = desk;
    this.#say = say;
  }

  /** False until the first message: if the person leaves before it, nothing is stored. */
  get isThere(): boolean {
    return this.#agent !== undefined;
  }

  get open(): OpenTurn | undefined {
    return this.#open;
  }

  /** Exit code of the last turn that ended in this process. */
  get lastCode(): ExitCode {
    return this.#lastCode;
  }

  /** Resumes an earlier conversation, and its open turn if there is one. */
  async comeBack(): Promise<void> {
    const agent = await this.#theAgent();
    // On the terminal of an earlier process they are still to be seen.
    if (this.#setup.link?.start.isFirst !== false) {
      for (const line of recentLines(await agent.getMessages())) this.#say(line);
    }
    const { openTurnId } = agent.state;
    await agent.start();
    if (openTurnId !== null) {
      this.#open = { turnId: openTurnId, state: "running" };
      for (const message of this.#setup.link?.start.unsent ?? []) await this.steer(message);
      await this.#follow(agent, openTurnId);
      return;
    }
    if (agent.state.status === "paused") this.#say("Paused. The next message ends the pause.");
    for (const message of this.#setup.link?.start.unsent ?? []) await this.send(message);
  }

  async send(message: TypedMessage): Promise<void> {
    if (this.#open !== undefined) {
      this.#say(`Not sent: the last turn is still ${this.#open.state}. ${wayOut(this.#open)}`);
      return;
    }
    const agent = await this.#theAgent();
    await agent.start();
    if (agent.state.status === "paused") await agent.resume();
    // An input that the last turn did not see may have opened a turn by itself.
    const { key, text } = message;
    const turn = agent.executeTurn(text, { key, budget: this.#setup.job.budget, ifBusy: "steer" });
    await this.#follow(agent, await this.#stored(message, () => turn.id));
  }

  /** Tells the parent process until when the message would be lost with this one. */
  async #stored<T>(message: TypedMessage, store: () => Promise<T>): Promise<T> {
    const { link } = this.#setup;
    link?.sending(message);
    try {
      const stored = await store();
      link?.sent(message.key);
      return stored;
    } catch (error) {
      // The runtime of a process that is to end takes nothing any more: the next process sends it.
      if (this.#setup.runtime.isOpen) link?.sent(message.key);
      throw error;
    }
  }

  /** Gives a line to the running turn, which sees it at its next model call. */
  async steer(message: TypedMessage): Promise<void> {
    const [agent, open] = [this.#agent, this.#open];
    if (agent === undefined || open === undefined) return await this.send(message);
    const { key, text } = message;
    const answer = await this.#stored(message, () => agent.turn(open.turnId).steer(text, { key }));
    if (answer.status === "queued") this.#queued.push(answer.turnId);
    this.#say(answer.status === "delivered" ? "(delivered: the next model call sees it)" : "(queued: the next turn)");
  }

  async pause(): Promise<void> {
    if (this.#agent === undefined || this.#open === undefined) return this.#say("No turn is open.");
    this.#say("Pausing at the next safe point.");
    this.#pausing = this.#agent.pause();
    await this.#pausing;
  }

  async resume(): Promise<void> {
    if (this.#agent?.state.status !== "paused") return this.#say("Nothing is paused.");
    this.#pausing = undefined;
    await this.#agent.resume();
    if (this.#open?.state === "paused") await this.#follow(this.#agent, this.#open.turnId);
  }

  async abort(): Promise<void> {
    const [agent, open] = [this.#agent, this.#open];
    if (agent === undefined || open === undefined) return this.#say("No turn is open.");
    const turn = agent.turn(open.turnId);
    await turn.abort(`aborted in the chat by ${userName()}`);
    const result = await turn.result;
    // `#follow` handles the end of a running turn.
    if (open.state !== "running") await this.#ended(agent, result);
  }

  /** Asks the person again about postponed requests. */
  async askAgain(): Promise<void> {
    if (this.#agent === undefined || this.#open?.state !== "waiting") return;
    this.#desk.askAgain();
    await this.#follow(this.#agent, this.#open.turnId);
  }

  async #theAgent(): Promise<Agent> {
    const { runtime, job } = this.#setup;
    this.#agent ??= await runtime.agent(job.agents[0].name, { agentId: job.rootAgentId, metadata: job.metadata });
    return this.#agent;
  }

  async #follow(agent: Agent, turnId: string): Promise<void> {
    this.#open = { turnId, state: "running" };
    const rest = await this.#desk.rest(() => agent.turn(turnId).settled);
    if (rest.status === "waiting") await this.#waits(rest);
    else await this.#ended(agent, rest);
  }

  async #ended(agent: Agent, result: TurnResult): Promise<void> {
    // The pause was meant for this turn, which has ended anyway.
    await this.#pausing?.catch(() => {});
    if (this.#pausing !== undefined) await agent.resume();
    this.#pausing = undefined;
    this.#open = undefined;
    this.#lastCode = exitCodeOf(result);
    if (result.stop) this.#say(wayOnText(result.stop));
    const next = this.#queued.shift();
    if (next !== undefined) await this.#follow(agent, next);
  }

  async #waits(rest: Extract<TurnRest, { status: "waiting" }>): Promise<void> {
    const { runtime, job } = this.#setup;
    const { turnId } = rest;
    // Requests that were open at the pause remain open, and are asked again after it.
    if (rest.reason === "paused" || this.#agent?.state.status === "paused") {
      await treeAtRest(runtime.stores, { runtime, rootAgentId: job.rootAgentId, isElsewhere: false });
      this.#open = { turnId, state: "paused" };
      this.#say(`Paused. ${wayOut(this.#open)}`);
      return;
    }
    this.#open = { turnId, state: "waiting", requests: rest.requests };
    this.#say(`${formatNumberOf(rest.requests.length, "request")} left open. ${wayOut(this.#open)}`);
  }
}

/** What to do after a stop: the next message starts a turn with a new budget; a lifetime budget remains exhausted. */
function wayOnText({ accountId }: LimitStop): string {
  if (accountId.startsWith("turn:")) return "Type a message to continue: the next turn has a new budget.";
  return "The lifetime budget of this agent is used up, so no further turn can run. /budget shows it.";
}

function wayOut({ state }: OpenTurn): string {
  return `${state === "waiting" ? "/requests asks again" : "/resume continues"}, /abort ends the turn.`;
}

const messagesShown = 6;
const longestText = 160;

/** The last messages of a conversation on one line each, without those of tools and hooks. */
export function recentLines(messages: readonly Message[]): string[] {
  const said = messages.flatMap((message) => {
    const text = oneLine(textOf(message.content));
    const who = message.origin === "user" ? "you" : message.role === "assistant" ? "agent" : undefined;
    return who === undefined || text === "" ? [] : [{ who, text }];
  });
  const shown = said.slice(-messagesShown);
  const left = said.length - shown.length;
  return [
    ...(left > 0 ? [`… ${formatNumberOf(left, "earlier message")}`] : []),
    ...shown.map(({ who, text }) => `${who}: ${truncate(text, longestText)}`),
  ];
}

export interface ChatSetup {
  readonly context: CliContext;
  readonly runtime: Runtime;
  readonly job: Job;
  /** Whether the agent exists. */
  readonly isKnown: boolean;
  /** Command line to resume this conversation. */
  readonly comeBack: string;
  /** Handles Ctrl-C on a terminal that reports it as a key. */
  readonly onInterrupt: () => void;
  /** Called for each typed line. */
  readonly onTyped: () => void;
  /** The parent process of `troupe dev`; `undefined` for a chat of its own. */
  readonly link: SessionLink | undefined;
}
