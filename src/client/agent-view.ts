import type { Content, Json, Message, TroupeEvent } from "../state/index.ts";
import type { ListPage, NewAgent, RequestDecision, TurnInfo, TurnRequest } from "./api-types.ts";
import type { AgentHandle, ExecuteTurnOptions, KeyedOptions, SteerResult, TroupeClient } from "./client.ts";
import { TroupeClientError } from "./client-error.ts";
import { assertObject, assertText } from "./input-checks.ts";

/** The agent of a page: an existing one, or the one with a name, which is created if it does not exist. */
export type ShownAgent = { readonly agentId: string } | (NewAgent & { readonly key: string });

/** A conversation with an agent for display. Each change creates a new object; unchanged fields keep their objects. */
export interface AgentSnapshot {
  /**
   * `connecting`: nothing is known yet. `ready`: the agent accepts a message. `working`: a turn is running. `waiting`:
   * a turn waits for a decision on one of `requests`, or is paused. `broken`: `error` ended the view; `retry()` starts
   * it again.
   */
  readonly status: "connecting" | "ready" | "working" | "waiting" | "broken";
  /** `null` until the agent is known. */
  readonly agentId: string | null;
  /** The stored conversation, oldest first. */
  readonly messages: readonly Message[];
  /** The streaming answer; empty without one. The complete answer is in `messages`. */
  readonly text: string;
  /** The value of the streaming answer so far, if the agent has an `output` schema; not validated. `null` without one. */
  readonly output: Json | null;
  /** Open requests of the open turn, of the agent itself and its subagents. */
  readonly requests: readonly TurnRequest[];
  /** The newest known turn, or `null`. `result` describes how the turn ended. */
  readonly turn: TurnInfo | null;
  /** The error that ended the view; `null` while it is active. Failed calls reject and are not reported here. */
  readonly error: TroupeClientError | null;
}

const beginning: AgentSnapshot = {
  status: "connecting",
  agentId: null,
  messages: [],
  text: "",
  output: null,
  requests: [],
  turn: null,
  error: null,
};

/** Events after which the messages or the turn have changed. */
const changing: ReadonlySet<TroupeEvent["type"]> = new Set([
  "turn.started",
  "turn.answered",
  "turn.waiting",
  "turn.completed",
  "turn.stopped",
  "turn.failed",
  "model.responded",
  "tool.completed",
  "tool.failed",
  "request.opened",
  "request.decided",
  "conversation.cleared",
  "lifecycle.changed",
]);

/** Number of the newest messages that are read after a change. */
const WINDOW = 100;

/**
 * Follows one agent for a page: its conversation, its turn with open requests, and the streaming answer.
 *
 * Invariants
 * 1. Stored state is read from the server, never computed from events: an event only triggers a read. So a page that
 *    was reloaded or offline shows the same as every other page.
 * 2. At most one read is running; an event meanwhile triggers one more.
 * 3. After `close` nothing changes, and no request is sent.
 */
export class AgentView {
  readonly #client: TroupeClient;
  readonly #agent: ShownAgent;
  readonly #listeners = new Set<() => void>();
  #following: Following | undefined;
  #snapshot: AgentSnapshot = beginning;

  /** Sends nothing until `open`. Throws `TroupeClientError` for an agent without a name. */
  constructor(client: TroupeClient, agent: ShownAgent) {
    assertObject("the agent", agent);
    if ("agentId" in agent) assertText("agentId", agent.agentId);
    else assertText("key", agent.key, 255);
    this.#client = client;
    this.#agent = agent;
  }

  readonly snapshot = (): AgentSnapshot => this.#snapshot;

  readonly subscribe = (listener: () => void): (() => void) => {
    this.#listeners.add(listener);
    return () => void this.#listeners.delete(listener);
  };

  /** Starts to follow; starts again if it already follows. */
  readonly open = (): void => {
    this.close();
    const following = new Following(this.#client, this.#agent, (change) => {
      if (this.#following !== following) return;
      this.#snapshot = { ...this.#snapshot, ...change };
      for (const listener of this.#listeners) listener();
    });
    this.#following = following;
    following.begin();
  };

  readonly close = (): void => {
    this.#following?.end();
    this.#following = undefined;
  };

  /** Starts a turn. Rejects with `TroupeClientError`, with the code `agent_busy` while another turn is open. */
  readonly send = async (input: Content | null, options?: ExecuteTurnOptions): Promise<void> => {
    await this.#open().send(input, options);
  };

  /** Gives an input to the open turn, or starts one, and returns where it went. Rejects with `TroupeClientError`. */
  readonly steer = async (input: Content, options?: KeyedOptions): Promise<SteerResult> =>
    await this.#open().steer(input, options);

  /** Decides one of `requests`. Rejects with `TroupeClientError`. */
  readonly decide = async (request: TurnRequest, decision: RequestDecision): Promise<void> => {
    await this.#open().decide(request, decision);
  };

  /** Ends the open turn and the queued ones. Rejects with `TroupeClientError`. */
  readonly abort = async (reason?: string): Promise<void> => {
    await this.#open().abort(reason);
  };

  #open(): Following {
    if (this.#following !== undefined) return this.#following;
    throw new TroupeClientError("invalid_input", "the view is closed; open it first");
  }
}

/** One session of an open view. */
class Following {
  readonly #client: TroupeClient;
  readonly #change: (change: Partial<AgentSnapshot>) => void;
  readonly #left = new AbortController();
  readonly #agent: Promise<AgentHandle>;
  #messages: readonly Message[] = [];
  #turn: number | null = null;
  #isOpenTurn = false;
  #isSteered = false;
  #text = "";
  #output: Json | null = null;
  /** The step of the streaming text. */
  #step = "";
  #reading: Promise<void> | undefined;
  #isStale = false;

  constructor(client: TroupeClient, agent: ShownAgent, change: (change: Partial<AgentSnapshot>) => void) {
    const { signal } = this.#left;
    this.#client = client;
    this.#change = change;
    this.#agent =
      "agentId" in agent ? Promise.resolve(client.agent(agent.agentId)) : client.createAgent(agent, { signal });
    // Callers that await it get the error, and so does `begin`.
    this.#agent.catch(() => undefined);
  }

  begin(): void {
    this.#change({ ...beginning });
    this.#follow().catch((error: unknown) => this.#break(error));
  }

  end(): void {
    this.#left.abort();
  }

  async send(input: Content | null, options: ExecuteTurnOptions = {}): Promise<void> {
    const { number } = await (await this.#agent).executeTurn(input, options);
    if (!this.#isOpenTurn) this.#turn = number;
    await this.#read();
  }

  async steer(input: Content, options?: KeyedOptions): Promise<SteerResult> {
    const answer = await (await this.#agent).steer(input, options);
    if (!this.#isOpenTurn) this.#turn = answer.number;
    await this.#read();
    return answer;
  }

  async decide(request: TurnRequest, decision: RequestDecision): Promise<void> {
    await this.#client.decide(request, decision);
    await this.#read();
  }

  async abort(reason: string | undefined): Promise<void> {
    await (await this.#agent).abort(reason);
    await this.#read();
  }

  async #follow(): Promise<void> {
    const { signal } = this.#left;
    const agent = await this.#agent;
    const { agentId } = agent;
    // The cursor is read before the stored state, so that changes in between arrive as events.
    const { cursor } = await this.#client.tree(agentId, { signal });
    const { items } = await agent.turns({ limit: 1, signal });
    this.#turn = items[0]?.number ?? null;
    this.#change({ agentId });
    await this.#read();
    for await (const event of this.#client.follow(agentId, { after: cursor, signal })) {
      if (event.agentId === agentId) this.#take(event);
      // The message of an input is part of the conversation once the model is asked.
      const isShown = event.type === "step.started" && this.#isSteered;
      this.#isSteered = event.type === "turn.steered" || (this.#isSteered && !isShown);
      if (changing.has(event.type) || isShown) this.#read().catch((error: unknown) => this.#break(error));
    }
  }

  #take(event: TroupeEvent): void {
    const step = `${event.turnId}:${event.step}`;
    if (event.type === "turn.started") this.#turn = event.number;
    if (event.type === "step.started" || event.type === "step.restarted") {
      this.#show("", step);
      this.#showOutput(null, step);
    }
    if (event.type === "text.snapshot") this.#show(event.text, step);
    if (event.type === "output.delta") this.#showOutput(event.output, step);
    // A delta after a gap is ignored: a snapshot follows.
    if (event.type === "text.delta" && event.offset <= this.#text.length) {
      this.#show(this.#text.slice(0, event.offset) + event.text, step);
    }
  }

  #show(text: string, step: string): void {
    this.#step = step;
    if (text === this.#text || this.#isAnswered()) return;
    this.#text = text;
    this.#change({ text });
  }

  #showOutput(output: Json | null, step: string): void {
    this.#step = step;
    if (output === this.#output || this.#isAnswered()) return;
    this.#output = output;
    this.#change({ output });
  }

  /** Whether the messages contain the answer of the streaming step. */
  #isAnswered(): boolean {
    return this.#messages.findLast(({ role }) => role === "assistant")?.metadata?.step_id === this.#step;
  }

  /** Reads the stored state. Resolves once everything stored at the time of the call is shown. */
  async #read(): Promise<void> {
    if (this.#reading !== undefined) {
      this.#isStale = true;
      await this.#reading;
      return;
    }
    this.#reading = this.#readAll();
    try {
      await this.#reading;
    } finally {
      this.#reading = undefined;
    }
  }

  async #readAll(): Promise<void> {
    do {
      this.#isStale = false;
      const { signal } = this.#left;
      const agent = await this.#agent;
      const [turn, requests, messages] = await Promise.all([
        this.#turn === null ? null : agent.turn(this.#turn).current({ signal }),
        this.#client.requests({ root: agent.agentId, limit: 100, signal }),
        this.#newMessages(agent),
      ]);
      this.#messages = messages;
      this.#isOpenTurn = turn !== null && turn.result === null;
      // Events and messages arrive independently: an answer that is among the messages is not shown twice.
      if (!this.#isOpenTurn || this.#isAnswered()) {
        this.#text = "";
        this.#output = null;
      }
      const streaming = { text: this.#text, output: this.#output };
      this.#change({ turn, requests: requests.items, messages, ...streaming, status: statusOf(turn) });
    } while (this.#isStale);
  }

  /** Reads the conversation; if the older messages are known, reads only the newest. */
  async #newMessages(agent: AgentHandle): Promise<readonly Message[]> {
    const { signal } = this.#left;
    const { items } = await agent.messages({ last: WINDOW, limit: WINDOW, signal });
    const [first] = items;
    const known = first === undefined ? -1 : this.#messages.findLastIndex(({ id }) => id === first.id);
    if (known >= 0 || items.length < WINDOW) {
      const byId = new Map(this.#messages.slice(Math.max(known, 0)).map((message) => [message.id, message]));
      return [
        ...this.#messages.slice(0, Math.max(known, 0)),
        ...items.map((message) => byId.get(message.id) ?? message),
      ];
    }
    const all: Message[] = [];
    let page: ListPage<Message>;
    let after: string | undefined;
    do {
      page = await agent.messages({ limit: WINDOW, after, signal });
      all.push(...page.items);
      after = page.next ?? undefined;
    } while (after !== undefined);
    return all;
  }

  #break(error: unknown): void {
    if (this.#left.signal.aborted) return;
    this.#left.abort();
    const known = error instanceof TroupeClientError ? error : undefined;
    const fault = known ?? new TroupeClientError("internal", "the view failed; see its cause", { cause: error });
    this.#change({ status: "broken", error: fault });
  }
}

function statusOf(turn: TurnInfo | null): AgentSnapshot["status"] {
  if (turn === null || turn.result !== null) return "ready";
  return turn.status === "waiting" ? "waiting" : "working";
}
