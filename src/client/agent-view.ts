import type { Content, Message, TroupeEvent } from "../state/index.ts";
import type { ListPage, NewAgent, RequestDecision, TurnInfo, TurnRequest } from "./api-types.ts";
import type { AgentHandle, ExecuteTurnOptions, TroupeClient } from "./client.ts";
import { TroupeClientError } from "./client-error.ts";
import { assertObject, assertText } from "./input-checks.ts";

/** The agent that a page shows: one that is there, or one that is created under a name, if there is none of that name. */
export type ShownAgent = { readonly agentId: string } | (NewAgent & { readonly key: string });

/** A conversation with an agent as a page shows it. Each change is a new object; parts that did not change are the same. */
export interface AgentSnapshot {
  /**
   * `connecting`: nothing is known yet. `ready`: the agent takes a message. `working`: a turn is under way. `waiting`: a turn
   * waits for a decision on one of `requests`, or is paused. `broken`: `error` ended the view; `retry()` begins it again.
   */
  readonly status: "connecting" | "ready" | "working" | "waiting" | "broken";
  /** Null until the agent is there. */
  readonly agentId: string | null;
  /** The conversation as it is stored, oldest first. */
  readonly messages: readonly Message[];
  /** The answer that is being written; empty when there is none. It is in `messages` when it is complete. */
  readonly text: string;
  /** What the open turn waits for, in the agent itself and its subagents. */
  readonly requests: readonly TurnRequest[];
  /** The newest turn that this view knows, or `null` if it knows none. `result` says how the turn ended. */
  readonly turn: TurnInfo | null;
  /** Why the view has ended; null while it goes on. Refused calls reject and are not in here. */
  readonly error: TroupeClientError | null;
}

const beginning: AgentSnapshot = {
  status: "connecting",
  agentId: null,
  messages: [],
  text: "",
  requests: [],
  turn: null,
  error: null,
};

/** Events after which the messages or the turn are other ones than before. */
const changing: ReadonlySet<TroupeEvent["type"]> = new Set([
  "turn.started",
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

/** The newest messages that are read after a change. */
const WINDOW = 100;

/**
 * Follows one agent for a page: its conversation, its turn, what that waits for, and the answer while it is written.
 *
 * Invariants
 * 1. What is stored is read from the server, never computed from events: an event only says that there is something to
 *    read. So a page that was reloaded, and one that was offline, show what every other page shows.
 * 2. At most one reading is under way; an event during it causes one more.
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

  /** Begins to follow, from anew if it follows already. */
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

  /** Starts a turn. Rejects with `TroupeClientError`: with the code `agent_busy` while another turn is open. */
  readonly send = async (input: Content | null, options?: ExecuteTurnOptions): Promise<void> => {
    await this.#open().send(input, options);
  };

  /** Decides a request of `requests`, as it is shown. Rejects with `TroupeClientError`. */
  readonly decide = async (request: TurnRequest, decision: RequestDecision): Promise<void> => {
    await this.#open().decide(request, decision);
  };

  /** Ends the open turn and those that are queued behind it. Rejects with `TroupeClientError`. */
  readonly abort = async (reason?: string): Promise<void> => {
    await this.#open().abort(reason);
  };

  #open(): Following {
    if (this.#following !== undefined) return this.#following;
    throw new TroupeClientError("invalid_input", "the view is closed; open it first");
  }
}

/** One time that a view is open. */
class Following {
  readonly #client: TroupeClient;
  readonly #change: (change: Partial<AgentSnapshot>) => void;
  readonly #left = new AbortController();
  readonly #agent: Promise<AgentHandle>;
  #messages: readonly Message[] = [];
  #turn: number | null = null;
  #isOpenTurn = false;
  #text = "";
  /** The step whose text is shown. */
  #step = "";
  #reading: Promise<void> | undefined;
  #isStale = false;

  constructor(client: TroupeClient, agent: ShownAgent, change: (change: Partial<AgentSnapshot>) => void) {
    const { signal } = this.#left;
    this.#client = client;
    this.#change = change;
    this.#agent =
      "agentId" in agent ? Promise.resolve(client.agent(agent.agentId)) : client.createAgent(agent, { signal });
    // Callers that await it get the error; so does `begin`.
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
    // First the place in the journal, then what is stored: what happens in between comes as an event as well.
    const { cursor } = await this.#client.tree(agentId, { signal });
    const { items } = await agent.turns({ limit: 1, signal });
    this.#turn = items[0]?.number ?? null;
    this.#change({ agentId });
    await this.#read();
    for await (const event of this.#client.follow(agentId, { after: cursor, signal })) {
      if (event.agentId === agentId) this.#take(event);
      if (changing.has(event.type)) this.#read().catch((error: unknown) => this.#break(error));
    }
  }

  #take(event: TroupeEvent): void {
    const step = `${event.turnId}:${event.step}`;
    if (event.type === "turn.started") this.#turn = event.number;
    if (event.type === "step.started" || event.type === "step.restarted") this.#show("", step);
    if (event.type === "text.snapshot") this.#show(event.text, step);
    // A piece behind a gap is not shown: a snapshot follows.
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

  /** Whether the answer of the step whose text is shown is among the messages. */
  #isAnswered(): boolean {
    return this.#messages.findLast(({ role }) => role === "assistant")?.metadata?.step_id === this.#step;
  }

  /** Reads what is stored. Resolves when everything is shown that was stored at the time of the call. */
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
      // Events and messages are read apart: an answer that is among the messages is not shown twice.
      if (!this.#isOpenTurn || this.#isAnswered()) this.#text = "";
      this.#change({ turn, requests: requests.items, messages, text: this.#text, status: statusOf(turn) });
    } while (this.#isStale);
  }

  /** The conversation, of which only the newest part is read where the rest is known. */
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
