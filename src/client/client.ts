import type { Content, JsonObject, Message, TroupeEvent } from "../state/index.ts";
import type {
  AgentInfo,
  BudgetInput,
  ClientTool,
  DefinitionInfo,
  ListOptions,
  ListPage,
  NewAgent,
  RequestDecision,
  TurnInfo,
  TurnRequest,
  TurnSummary,
} from "./api-types.ts";
import {
  assertIdempotencyKey,
  assertInput,
  assertKnown,
  assertObject,
  assertOneOf,
  assertText,
  assertWhole,
  invalidInput,
} from "./input-checks.ts";
import { type ClientOptions, Transport } from "./transport.ts";

/** What every call takes. */
export interface CallOptions {
  /** Ends the call; it rejects with the reason of the signal. Default: none. */
  readonly signal?: AbortSignal | undefined;
}

/** What calls take that start or decide something. */
export interface KeyedOptions extends CallOptions {
  /**
   * 1 to 255 visible ASCII characters: the same key does the same thing once, however often it is sent. Default: a new
   * one for each call, so that only the client's own retries are the same.
   */
  readonly idempotencyKey?: string | undefined;
}

/** What `executeTurn` takes. */
export interface ExecuteTurnOptions extends KeyedOptions {
  /** Limits of this turn. Default: those of the definition and of the agent's life. */
  readonly budget?: BudgetInput | undefined;
  /** What to do while another turn is open. Default `refuse`: rejects with the code `agent_busy`. */
  readonly ifBusy?: "refuse" | "queue" | "supersede" | undefined;
  /** Tools of this turn that the caller runs, for a definition with `clientTools: true`. Default: none. */
  readonly clientTools?: readonly ClientTool[] | undefined;
}

/** Where a stream of events begins, and what ends it. */
export interface FollowOptions extends CallOptions {
  /** The cursor of the last event that the caller has, or of `tree()`. Default: from the beginning. */
  readonly after?: string | undefined;
}

/** A tree of agents at one moment. */
export interface TreeInfo {
  /** `follow` goes on after it, with no gap and no double. */
  readonly cursor: string;
  /** The root, and all subagents. */
  readonly agents: readonly AgentInfo[];
  /** The open ones, oldest first. */
  readonly requests: readonly TurnRequest[];
}

/**
 * A client of troupe's own HTTP API (`apiSurface`), for browsers, Node, Bun and Deno. It imports nothing of the runtime.
 * Its functions reject with `TroupeClientError`; wrong input is refused before a request is sent.
 */
export interface TroupeClient {
  /** The agents that can be created. */
  definitions(options?: CallOptions): Promise<readonly DefinitionInfo[]>;
  /** Creates and starts an agent. With a `key` it is the agent of that name, if there is one. */
  createAgent(agent: NewAgent, options?: KeyedOptions): Promise<AgentHandle>;
  /** The caller's agents, newest first. */
  agents(options?: ListOptions & { readonly session?: string | undefined }): Promise<ListPage<AgentInfo>>;
  /** A handle on an agent; sends nothing. */
  agent(agentId: string): AgentHandle;
  /** Requests of the caller's agents, oldest first. `root`: only those of one tree. Default: open ones. */
  requests(
    options?: ListOptions & {
      readonly root?: string | undefined;
      readonly status?: TurnRequest["status"] | undefined;
    },
  ): Promise<ListPage<TurnRequest>>;
  /**
   * Decides a request, as it was shown: an approval counts for the arguments of this request alone. Rejects with
   * `request_conflict` when it was decided before. A call of a client's tool is decided with `answered` and its result.
   */
  decide(
    request: Pick<TurnRequest, "requestId" | "argumentsHash">,
    decision: RequestDecision,
    options?: KeyedOptions,
  ): Promise<TurnRequest>;
  /** An agent and its subagents at one moment. */
  tree(rootAgentId: string, options?: CallOptions): Promise<TreeInfo>;
  /**
   * The events of an agent and its subagents. Goes on after a lost connection with no gap and no double, and ends with the
   * signal or with `break`.
   */
  follow(rootAgentId: string, options?: FollowOptions): AsyncGenerator<TroupeEvent, void, undefined>;
}

/** An agent of the server. */
export interface AgentHandle {
  /** Its id. */
  readonly agentId: string;
  /** The agent as it is now. */
  info(options?: CallOptions): Promise<AgentInfo>;
  /** Starts a turn. Null continues without a new message. Resolves when it is accepted; it goes on if the client leaves. */
  executeTurn(input: Content | null, options?: ExecuteTurnOptions): Promise<TurnHandle>;
  /** A handle on a turn by its number, from 1; sends nothing. */
  turn(number: number): TurnHandle;
  /** The agent's turns, the last changed first. */
  turns(
    options?: ListOptions & { readonly status?: TurnSummary["status"] | undefined },
  ): Promise<ListPage<TurnSummary>>;
  /** The conversation, oldest first. `last`: only the newest so many, 1 to 200. */
  messages(options?: ListOptions & { readonly last?: number | undefined }): Promise<ListPage<Message>>;
  /** Makes an agent ready again that was shut down, and carries on its open turn. */
  start(options?: CallOptions): Promise<AgentInfo>;
  /** Holds the agent and its subagents at the next safe point. `now`: drops model calls in flight. */
  pause(options?: CallOptions & { readonly now?: boolean | undefined }): Promise<AgentInfo>;
  /** Ends a pause. */
  resume(options?: CallOptions): Promise<AgentInfo>;
  /** Ends the open turn, those that are queued behind it, and its subagents. */
  abort(reason?: string, options?: CallOptions): Promise<AgentInfo>;
  /** Deletes the conversation, and the artifacts unless they are kept; refused while a turn is open. */
  clear(options?: CallOptions & { readonly keepArtifacts?: boolean | undefined }): Promise<AgentInfo>;
  /** Saves the agent and frees the server's memory; it takes no turns until it is started again. */
  shutdown(options?: CallOptions): Promise<AgentInfo>;
}

/** A turn of the server. */
export interface TurnHandle {
  /** Its id: that of the agent, `#`, and the number. */
  readonly turnId: string;
  /** The agent whose turn it is. */
  readonly agentId: string;
  /** Its number among the agent's turns, from 1. */
  readonly number: number;
  /** The turn as it is now. */
  current(options?: CallOptions): Promise<TurnInfo>;
  /** Resolves when the turn has ended or waits: for a decision on its `requests`, or for the end of a pause. */
  settled(options?: CallOptions): Promise<TurnInfo>;
  /**
   * The events of the turn and of everything below it, up to its end. Goes on after a lost connection with no gap and no
   * double; `after` continues where another one stopped, also after a reload of the page.
   */
  follow(options?: FollowOptions): AsyncGenerator<TroupeEvent, void, undefined>;
  /** Ends the turn; one that has ended stays as it is. */
  abort(reason?: string, options?: CallOptions): Promise<TurnInfo>;
}

/** Makes a client. Throws `TroupeClientError` (`invalid_input`) for wrong options; sends nothing. */
export function createClient(options: ClientOptions): TroupeClient {
  assertObject("the options of createClient()", options);
  assertKnown("createClient()", options, ["url", "headers", "credentials", "fetch", "retries"]);
  const transport = new Transport(options);

  return {
    definitions: async ({ signal } = {}) =>
      (await transport.json<ListPage<DefinitionInfo>>({ path: "/api/definitions", signal })).items,
    createAgent: async (agent, given = {}) => {
      assertNewAgent(agent);
      const headers = keyHeaders(given);
      const request = { method: "POST", path: "/api/agents", headers, body: agent, signal: given.signal } as const;
      return agentHandle(transport, (await transport.json<AgentInfo>(request)).agentId);
    },
    agents: async ({ signal, ...query } = {}) =>
      await transport.json({ path: "/api/agents", query: listQuery(query), signal }),
    agent: (agentId) => {
      assertText("agentId", agentId);
      return agentHandle(transport, agentId);
    },
    requests: async ({ signal, ...query } = {}) =>
      await transport.json({ path: "/api/requests", query: listQuery(query), signal }),
    decide: async (request, decision, given = {}) => {
      assertObject("request", request);
      assertText("request.requestId", request.requestId);
      assertText("request.argumentsHash", request.argumentsHash);
      assertDecision(decision);
      return await transport.json<TurnRequest>({
        method: "POST",
        path: `/api/requests/${encodeURIComponent(request.requestId.replace("#", "."))}`,
        headers: keyHeaders(given),
        body: { ...decision, argumentsHash: request.argumentsHash },
        signal: given.signal,
      });
    },
    tree: async (rootAgentId, { signal } = {}) => {
      assertText("rootAgentId", rootAgentId);
      return await transport.json<TreeInfo>({ path: `/api/trees/${encodeURIComponent(rootAgentId)}`, signal });
    },
    follow: (rootAgentId, given = {}) => {
      assertText("rootAgentId", rootAgentId);
      const path = `/api/trees/${encodeURIComponent(rootAgentId)}/events`;
      return eventsAt(transport, path, given, () => false);
    },
  };
}

function agentHandle(transport: Transport, agentId: string): AgentHandle {
  const path = `/api/agents/${encodeURIComponent(agentId)}`;
  const command = async (name: string, body: object, { signal }: CallOptions): Promise<AgentInfo> =>
    await transport.json<AgentInfo>({ method: "POST", path: `${path}/${name}`, body, signal });
  const turn = (number: number): TurnHandle => {
    assertWhole("the number of a turn", number, [1, Number.MAX_SAFE_INTEGER]);
    return turnHandle(transport, { agentId, number });
  };
  return {
    agentId,
    info: async ({ signal } = {}) => await transport.json<AgentInfo>({ path, signal }),
    executeTurn: async (input, given = {}) => {
      assertInput(input);
      const { signal, idempotencyKey: _key, ...options } = given;
      assertKnown("executeTurn()", options, ["budget", "ifBusy", "clientTools"]);
      if (options.ifBusy !== undefined) assertOneOf("ifBusy", options.ifBusy, ["refuse", "queue", "supersede"]);
      const headers = keyHeaders(given);
      const body = { input, ...options };
      const request = { method: "POST", path: `${path}/turns`, headers, body, signal } as const;
      return turn((await transport.json<{ readonly number: number }>(request)).number);
    },
    turn,
    turns: async ({ signal, ...query } = {}) =>
      await transport.json({ path: `${path}/turns`, query: listQuery(query), signal }),
    messages: async ({ signal, ...query } = {}) =>
      await transport.json({ path: `${path}/messages`, query: listQuery(query), signal }),
    start: async (given = {}) => await command("start", {}, given),
    pause: async ({ now, ...given } = {}) => await command("pause", now === undefined ? {} : { now }, given),
    resume: async (given = {}) => await command("resume", {}, given),
    abort: async (reason, given = {}) => await command("abort", reasonOf(reason), given),
    clear: async ({ keepArtifacts, ...given } = {}) =>
      await command("clear", keepArtifacts === undefined ? {} : { keepArtifacts }, given),
    shutdown: async (given = {}) => await command("shutdown", {}, given),
  };
}

/** How long one request waits for the end of a turn, in seconds: proxies cut longer ones. */
const WAIT_SECONDS = 25;

function turnHandle(transport: Transport, place: Pick<TurnHandle, "agentId" | "number">): TurnHandle {
  const { agentId, number } = place;
  const turnId = `${agentId}#${number}`;
  const path = `/api/agents/${encodeURIComponent(agentId)}/turns/${number}`;
  return {
    turnId,
    agentId,
    number,
    current: async ({ signal } = {}) => await transport.json<TurnInfo>({ path, signal }),
    settled: async ({ signal } = {}) => {
      for (;;) {
        const headers = { prefer: `wait=${WAIT_SECONDS}` };
        const now = await transport.json<TurnInfo>({ path, headers, signal });
        if (now.status !== "queued" && now.status !== "running") return now;
      }
    },
    follow: (given = {}) =>
      eventsAt(transport, path, given, (event) => event.turnId === turnId && ends.has(event.type)),
    abort: async (reason, { signal } = {}) =>
      await transport.json<TurnInfo>({ method: "POST", path: `${path}/abort`, body: reasonOf(reason), signal }),
  };
}

const ends: ReadonlySet<TroupeEvent["type"]> = new Set(["turn.completed", "turn.stopped", "turn.failed"]);

function eventsAt(
  transport: Transport,
  path: string,
  { after, signal }: FollowOptions,
  isLast: (event: TroupeEvent) => boolean,
): AsyncGenerator<TroupeEvent, void, undefined> {
  if (after !== undefined) assertText("after", after);
  return transport.events({ path, after, signal, isLast });
}

function reasonOf(reason: string | undefined): JsonObject {
  if (reason === undefined) return {};
  assertText("reason", reason, 100_000);
  return { reason };
}

function listQuery(query: object): Readonly<Record<string, string | number | undefined>> {
  const { limit, after, last, ...names } = query as Readonly<Record<string, string | number | undefined>>;
  if (limit !== undefined) assertWhole("limit", limit, [1, 100]);
  if (last !== undefined) assertWhole("last", last, [1, 200]);
  for (const [name, value] of Object.entries({ after, ...names })) if (value !== undefined) assertText(name, value);
  return query as Readonly<Record<string, string | number | undefined>>;
}

function keyHeaders({ idempotencyKey = newKey() }: KeyedOptions): { readonly "idempotency-key": string } {
  assertIdempotencyKey(idempotencyKey);
  return { "idempotency-key": idempotencyKey };
}

/** `crypto.randomUUID` is missing on pages without TLS. */
function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function assertNewAgent(agent: NewAgent): void {
  assertObject("the agent", agent);
  assertKnown("createAgent()", agent, ["definition", "key", "sessionId", "metadata", "budget", "messages"]);
  assertText("definition", agent.definition);
  if (agent.key !== undefined) assertText("key", agent.key, 255);
  if (agent.sessionId !== undefined) assertText("sessionId", agent.sessionId);
}

const membersOfVerdict: Readonly<Record<RequestDecision["verdict"], readonly string[]>> = {
  approved: [],
  provided: [],
  edited: ["arguments"],
  rejected: ["reason"],
  answered: ["result", "isError"],
};

function assertDecision(decision: RequestDecision): void {
  assertObject("decision", decision);
  assertOneOf("decision.verdict", decision.verdict, Object.keys(membersOfVerdict));
  assertKnown(`a decision "${decision.verdict}"`, decision, ["verdict", ...membersOfVerdict[decision.verdict]]);
  if (decision.verdict === "edited" && decision.arguments === undefined) throw invalidInput("arguments is missing");
  if (decision.verdict === "answered" && decision.result === undefined) throw invalidInput("result is missing");
}
