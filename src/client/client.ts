import type { Content, JsonObject, Message, StubReport, TroupeEvent } from "../state/index.ts";
import type {
  AgentInfo,
  DeletedAgent,
  BudgetInput,
  ClientTool,
  DefinitionInfo,
  ListOptions,
  ListPage,
  NewAgent,
  NewSchedule,
  RequestDecision,
  ScheduledRunInfo,
  ScheduleInfo,
  TurnInfo,
  TurnRequest,
  TurnSummary,
  TurnSettings,
} from "./api-types.ts";
import {
  assertIdempotencyKey,
  assertInput,
  assertKnown,
  assertObject,
  assertOneOf,
  assertSettings,
  assertStubs,
  assertStubsSecret,
  assertText,
  assertWhole,
  invalidInput,
} from "./input-checks.ts";
import { TroupeClientError } from "./client-error.ts";
import { type ClientOptions, Transport } from "./transport.ts";

/** Options of every call. */
export interface CallOptions {
  /** Aborts the call; it rejects with the signal's reason. Default: none. */
  readonly signal?: AbortSignal | undefined;
}

/** Options of calls that start or decide something. */
export interface KeyedOptions extends CallOptions {
  /**
   * 1 to 255 visible ASCII characters: repeated calls with the same key take effect once. Default: a new key for each
   * call, so that only the client's own retries share one.
   */
  readonly idempotencyKey?: string | undefined;
}

/** Options of `executeTurn`. */
export interface ExecuteTurnOptions extends KeyedOptions {
  /** Limits of this turn. Default: those of the definition and of the agent's lifetime. */
  readonly budget?: BudgetInput | undefined;
  /**
   * Behaviour while another turn is open. Default `refuse`: rejects with the code `agent_busy`. `steer`: that turn gets the input, and the
   * handle is that of the turn that has it.
   */
  readonly ifBusy?: "refuse" | "queue" | "supersede" | "steer" | undefined;
  /** Tools that the caller runs in this turn, for a definition with `clientTools: true`. Default: none. */
  readonly clientTools?: readonly ClientTool[] | undefined;
  /** Settings of the turn's model calls. Default: those of the definition. */
  readonly settings?: TurnSettings | undefined;
}

/**
 * Where an input for an open turn went. `delivered`: into that turn, whose model call of `step` sees it. `queued`: it has started the turn
 * of that `number`.
 */
export interface SteerResult {
  /** Whether the open turn has the input, or it has started a turn. */
  readonly status: "delivered" | "queued";
  /** The turn that has the input. */
  readonly turnId: string;
  /** The agent. */
  readonly agentId: string;
  /** Number of that turn. */
  readonly number: number;
  /** Only with `delivered`. */
  readonly step?: number | undefined;
}

/** Start and end of a stream of events. */
export interface FollowOptions extends CallOptions {
  /** The cursor of the last event that the caller received, or of `tree()`. Default: from the beginning. */
  readonly after?: string | undefined;
}

/** A snapshot of a tree of agents. */
export interface TreeInfo {
  /** `follow` continues after it, without gaps and duplicates. */
  readonly cursor: string;
  /** The root and all subagents. */
  readonly agents: readonly AgentInfo[];
  /** Open requests, oldest first. */
  readonly requests: readonly TurnRequest[];
}

/**
 * A client of troupe's own HTTP API (`apiSurface`), for browsers, Node, Bun and Deno. It imports nothing from the
 * runtime. Its functions reject with `TroupeClientError`; invalid input is refused before a request is sent.
 */
export interface TroupeClient {
  /** The agents that can be created. */
  definitions(options?: CallOptions): Promise<readonly DefinitionInfo[]>;
  /** Creates and starts an agent. With a `key`, returns the existing agent of that name. */
  createAgent(agent: NewAgent, options?: KeyedOptions): Promise<AgentHandle>;
  /** The caller's agents, newest first. */
  agents(options?: ListOptions & { readonly session?: string | undefined }): Promise<ListPage<AgentInfo>>;
  /** A handle on an agent; sends nothing. */
  agent(agentId: string): AgentHandle;
  /** Requests of the caller's agents, oldest first. `root`: only requests of one tree. Default: open ones. */
  requests(
    options?: ListOptions & {
      readonly root?: string | undefined;
      readonly status?: TurnRequest["status"] | undefined;
    },
  ): Promise<ListPage<TurnRequest>>;
  /**
   * Decides a request as passed in: an approval only applies to the arguments in this request. Rejects with
   * `request_conflict` if the request was already decided. A call of a client's tool is decided with `answered` and its
   * result.
   */
  decide(
    request: Pick<TurnRequest, "requestId" | "argumentsHash">,
    decision: RequestDecision,
    options?: KeyedOptions,
  ): Promise<TurnRequest>;
  /** Creates a schedule, which opens turns at its times. With a `key`, replaces the one of that name. */
  createSchedule(schedule: NewSchedule, options?: KeyedOptions): Promise<ScheduleHandle>;
  /** The caller's schedules, by id. `agent`: only those that run this agent. */
  schedules(options?: ListOptions & { readonly agent?: string | undefined }): Promise<ListPage<ScheduleInfo>>;
  /** A handle on a schedule; sends nothing. */
  schedule(scheduleId: string): ScheduleHandle;
  /** A snapshot of an agent and its subagents. */
  tree(rootAgentId: string, options?: CallOptions): Promise<TreeInfo>;
  /**
   * The events of an agent and its subagents. Resumes after a lost connection without gaps and duplicates, and ends
   * with the signal or with `break`.
   */
  follow(rootAgentId: string, options?: FollowOptions): AsyncGenerator<TroupeEvent, void, undefined>;
}

/** An agent on the server. */
export interface AgentHandle {
  /** Its id. */
  readonly agentId: string;
  /** The agent's current state. */
  info(options?: CallOptions): Promise<AgentInfo>;
  /**
   * Starts a turn. `null` continues without a new message. Resolves when the turn is accepted; it continues if the
   * client disconnects.
   */
  executeTurn(input: Content | null, options?: ExecuteTurnOptions): Promise<TurnHandle>;
  /** Gives another input to the open turn; without one, the input starts a turn. Resolves when it is part of a turn. */
  steer(input: Content, options?: KeyedOptions): Promise<SteerResult>;
  /** A handle on a turn by its number, from 1; sends nothing. */
  turn(number: number): TurnHandle;
  /** The agent's turns, the most recently changed first. */
  turns(
    options?: ListOptions & { readonly status?: TurnSummary["status"] | undefined },
  ): Promise<ListPage<TurnSummary>>;
  /** The conversation, oldest first. `last`: only this many of the newest messages, 1 to 200. */
  messages(options?: ListOptions & { readonly last?: number | undefined }): Promise<ListPage<Message>>;
  /** How the stubs of the agent's session were used; empty lists for a session without stubs. */
  stubs(options?: CallOptions): Promise<StubReport>;
  /** Restarts an agent that was shut down, and continues its open turn. */
  start(options?: CallOptions): Promise<AgentInfo>;
  /** Pauses the agent and its subagents at the next safe point. `now`: drops model calls in flight. */
  pause(options?: CallOptions & { readonly now?: boolean | undefined }): Promise<AgentInfo>;
  /** Ends a pause. */
  resume(options?: CallOptions): Promise<AgentInfo>;
  /** Ends the open turn, the queued turns and the subagents. */
  abort(reason?: string, options?: CallOptions): Promise<AgentInfo>;
  /** Deletes the conversation, and the artifacts unless `keepArtifacts` is set; refused while a turn is open. */
  clear(options?: CallOptions & { readonly keepArtifacts?: boolean | undefined }): Promise<AgentInfo>;
  /**
   * Deletes the agent for good, with its subagents and all that belongs to them. Refused while a turn is open (`agent_busy`) unless `abort`
   * is set. Only for root agents.
   */
  delete(options?: CallOptions & { readonly abort?: boolean | undefined }): Promise<DeletedAgent>;
  /** Saves the agent and frees the server's memory; it accepts no turns until it is started again. */
  shutdown(options?: CallOptions): Promise<AgentInfo>;
}

/** A schedule on the server. */
export interface ScheduleHandle {
  /** Its id. */
  readonly scheduleId: string;
  /** The schedule with its newest runs. */
  info(options?: CallOptions): Promise<ScheduleInfo>;
  /** Opens no more turns at its times until `resume()`. */
  pause(options?: CallOptions): Promise<ScheduleInfo>;
  /** Continues with the next time after now. */
  resume(options?: CallOptions): Promise<ScheduleInfo>;
  /** Opens one turn now, besides the times, also of a paused schedule. */
  runNow(options?: KeyedOptions): Promise<ScheduledRunInfo>;
  /** Removes it, and returns it as it was. Its turns continue. */
  delete(options?: CallOptions): Promise<ScheduleInfo>;
}

/** A turn on the server. */
export interface TurnHandle {
  /** Its id: the agent's id, `#`, and the number. */
  readonly turnId: string;
  /** The agent whose turn it is. */
  readonly agentId: string;
  /** Number of the turn within its agent, from 1. */
  readonly number: number;
  /** The turn's current state. */
  current(options?: CallOptions): Promise<TurnInfo>;
  /** Resolves when the turn has ended, or waits for a decision on its `requests` or for the end of a pause. */
  settled(options?: CallOptions): Promise<TurnInfo>;
  /**
   * The events of the turn and its subagents, up to the turn's end. Resumes after a lost connection without gaps and
   * duplicates; `after` continues an earlier stream, even after the page was reloaded.
   */
  follow(options?: FollowOptions): AsyncGenerator<TroupeEvent, void, undefined>;
  /** Gives the turn another input; if it is not the open turn any more, the input starts a turn. */
  steer(input: Content, options?: KeyedOptions): Promise<SteerResult>;
  /** Ends the turn; an ended turn is unchanged. */
  abort(reason?: string, options?: CallOptions): Promise<TurnInfo>;
}

/** Creates a client; sends nothing. Throws `TroupeClientError` (`invalid_input`) for invalid options. */
export function createClient(options: ClientOptions): TroupeClient {
  assertObject("the options of createClient()", options);
  assertKnown("createClient()", options, ["url", "headers", "credentials", "fetch", "retries", "stubsSecret"]);
  if (options.stubsSecret !== undefined) assertStubsSecret(options.stubsSecret);
  const transport = new Transport(options);

  return {
    definitions: async ({ signal } = {}) =>
      (await transport.json<ListPage<DefinitionInfo>>({ path: "/api/definitions", signal })).items,
    createAgent: async (agent, given = {}) => {
      assertNewAgent(agent);
      const headers = { ...keyHeaders(given), ...stubsHeaders(agent, options) };
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
    createSchedule: async (schedule, given = {}) => {
      assertNewSchedule(schedule);
      const request = { method: "POST", path: "/api/schedules", headers: keyHeaders(given), body: schedule } as const;
      const { scheduleId } = await transport.json<ScheduleInfo>({ ...request, signal: given.signal });
      return scheduleHandle(transport, scheduleId);
    },
    schedules: async ({ signal, ...query } = {}) =>
      await transport.json({ path: "/api/schedules", query: listQuery(query), signal }),
    schedule: (scheduleId) => {
      assertText("scheduleId", scheduleId);
      return scheduleHandle(transport, scheduleId);
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
      assertKnown("executeTurn()", options, ["budget", "ifBusy", "clientTools", "settings"]);
      if (options.settings !== undefined) assertSettings(options.settings);
      if (options.ifBusy !== undefined)
        assertOneOf("ifBusy", options.ifBusy, ["refuse", "queue", "supersede", "steer"]);
      const headers = keyHeaders(given);
      const body = { input, ...options };
      const request = { method: "POST", path: `${path}/turns`, headers, body, signal } as const;
      return turn((await transport.json<{ readonly number: number }>(request)).number);
    },
    steer: async (input, given = {}) => await steer(transport, path, input, given),
    turn,
    turns: async ({ signal, ...query } = {}) =>
      await transport.json({ path: `${path}/turns`, query: listQuery(query), signal }),
    messages: async ({ signal, ...query } = {}) =>
      await transport.json({ path: `${path}/messages`, query: listQuery(query), signal }),
    stubs: async ({ signal } = {}) => await transport.json<StubReport>({ path: `${path}/stubs`, signal }),
    start: async (given = {}) => await command("start", {}, given),
    pause: async ({ now, ...given } = {}) => await command("pause", now === undefined ? {} : { now }, given),
    resume: async (given = {}) => await command("resume", {}, given),
    abort: async (reason, given = {}) => await command("abort", reasonOf(reason), given),
    clear: async ({ keepArtifacts, ...given } = {}) =>
      await command("clear", keepArtifacts === undefined ? {} : { keepArtifacts }, given),
    delete: async ({ abort, signal } = {}) =>
      await transport.json({ method: "DELETE", path, query: abort === true ? { abort: "true" } : {}, signal }),
    shutdown: async (given = {}) => await command("shutdown", {}, given),
  };
}

function scheduleHandle(transport: Transport, scheduleId: string): ScheduleHandle {
  const path = `/api/schedules/${encodeURIComponent(scheduleId)}`;
  return {
    scheduleId,
    info: async ({ signal } = {}) => await transport.json({ path, signal }),
    pause: async ({ signal } = {}) => await transport.json({ method: "POST", path: `${path}/pause`, body: {}, signal }),
    resume: async ({ signal } = {}) =>
      await transport.json({ method: "POST", path: `${path}/resume`, body: {}, signal }),
    runNow: async (given = {}) =>
      await transport.json({
        method: "POST",
        path: `${path}/run`,
        headers: keyHeaders(given),
        body: {},
        signal: given.signal,
      }),
    delete: async ({ signal } = {}) => await transport.json({ method: "DELETE", path, signal }),
  };
}

/** Maximum time that one request waits for the end of a turn, in seconds: proxies cut longer ones. */
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
    steer: async (input, given = {}) => await steer(transport, path, input, given),
    abort: async (reason, { signal } = {}) =>
      await transport.json<TurnInfo>({ method: "POST", path: `${path}/abort`, body: reasonOf(reason), signal }),
  };
}

async function steer(transport: Transport, path: string, input: Content, given: KeyedOptions): Promise<SteerResult> {
  if (input === null)
    throw new TroupeClientError("invalid_input", "input is null; expected a text, or a list of parts");
  assertInput(input);
  const { signal, idempotencyKey: _key, ...others } = given;
  assertKnown("steer()", others, []);
  const headers = keyHeaders(given);
  return await transport.json<SteerResult>({ method: "POST", path: `${path}/steer`, headers, body: { input }, signal });
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

/** Without TLS, pages have no `crypto.randomUUID`. */
function newKey(): string {
  return Array.from(crypto.getRandomValues(new Uint8Array(16)), (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function assertNewAgent(agent: NewAgent): void {
  assertObject("the agent", agent);
  assertKnown("createAgent()", agent, ["definition", "key", "sessionId", "metadata", "budget", "messages", "stubs"]);
  assertText("definition", agent.definition);
  if (agent.key !== undefined) assertText("key", agent.key, 255);
  if (agent.sessionId !== undefined) assertText("sessionId", agent.sessionId);
  if (agent.stubs !== undefined) assertStubs(agent.stubs);
}

function assertNewSchedule(schedule: NewSchedule): void {
  assertObject("the schedule", schedule);
  const { definition, input, key, at, every, cron } = schedule;
  assertKnown("createSchedule()", schedule, scheduleMembers);
  assertText("definition", definition);
  assertInput(input);
  if (input === null) throw invalidInput("input is null; expected a text, or a list of parts");
  if (key !== undefined) assertText("key", key, 255);
  if (cron !== undefined) assertText("cron", cron, 200);
  if ([at, every, cron].filter((one) => one !== undefined).length !== 1) {
    throw invalidInput("the schedule needs exactly one of at, every and cron");
  }
  if (schedule.ifMissed !== undefined) assertOneOf("ifMissed", schedule.ifMissed, ["skip", "once", "all"]);
  if (schedule.ifBusy !== undefined) assertOneOf("ifBusy", schedule.ifBusy, ["queue", "skip", "steer", "supersede"]);
}

const scheduleMembers =
  "definition input key at every cron timezone startAt endAt agentId sessionId metadata budget ifMissed ifBusy".split(
    " ",
  );

function stubsHeaders({ stubs }: NewAgent, { stubsSecret }: ClientOptions): Record<string, string> {
  if (stubs === undefined) return {};
  if (stubsSecret !== undefined) return { "troupe-stubs-secret": stubsSecret };
  throw invalidInput("stubs need the server's secret; pass stubsSecret to createClient()");
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
