import { type Clock, createId } from "../../base/index.ts";
import { type Budget, outerPartsOf } from "../../budget/index.ts";
import {
  AlreadyOwnedError,
  InvalidInputError,
  LeaseLostError,
  AgentDeletedError,
  NotFoundError,
  PolicyRefusedError,
  RequestConflictError,
} from "../../errors/index.ts";
import {
  type Agent,
  type AgentStartOptions,
  assertSameStubs,
  type Decide,
  type DeletedTree,
  type Runtime,
  type SteerAnswer,
  type TreeSnapshot,
  type Turn,
} from "../../runtime/index.ts";
import {
  agentOfTurn,
  type AgentRecord,
  type AgentRequest,
  budgetQuestionSchema,
  type Content,
  type JsonObject,
  numberOfTurn,
  turnIdOf,
  type TurnRecord,
  type TroupeEvent,
} from "../../state/index.ts";
import { formatAgentCursor, formatTurnCursor, type TurnFilter } from "../../stores/index.ts";
import type { Auth } from "../../tools/index.ts";
import { CallerSchedules, type ScheduleLimits } from "./caller-schedules.ts";
import { assertSame, assertUnmarked, creationMark } from "./creation-mark.ts";
import { isKeyReused, keyReused, unauthenticated } from "./failures.ts";
import type { Identity } from "./identity.ts";
import { limitsAtWork } from "./limits.ts";
import { agentIdOfKey, agentIdOfName, contentHash, type RequestKey, turnKeyOf } from "./names.ts";
import { answerTurn, isKeyTaken, sendPlainMessage, type StartedTurn, type StartTurnOptions } from "./plain-message.ts";
import { limitOf, type Page, type PageOptions, pageOf } from "./pages.ts";
import { assertNotDearer, assertNotRaised } from "./turn-budget.ts";

/** The server's parts that a caller uses. */
export interface CallerDependencies {
  /** The runtime of the caller's tenant. */
  readonly runtime: Runtime;
  /** The source of time of the server. */
  readonly clock: Clock;
  /** Answers requests for agents of other callers with 401 instead of 404. */
  readonly deniesStrangers: boolean;
  /**
   * Counts a starting turn until the returned function is called. Rejects with `ServerError` (429) when the caller has
   * too many turns.
   */
  readonly admitTurn: () => Promise<() => void>;
  /** Limits of the caller's schedules. Default: those of `ServeLimits`. */
  readonly limits?: ScheduleLimits | undefined;
}

export interface NewAgentOptions {
  /** Name of the definition. */
  readonly definition: string;
  /** A name that the client chooses; the same name is the same agent. Default: none. */
  readonly name?: string | undefined;
  /** An id that the surface created for this caller. Default: derived from the name or the key. */
  readonly agentId?: string | undefined;
  /** Idempotency key; without a name and an id it also identifies the agent. Default: none. */
  readonly key?: RequestKey | undefined;
  /** Groups agents for clients. Default: none. */
  readonly sessionId?: string | undefined;
  /** The client's metadata, as JSON. Default: none. */
  readonly metadata?: JsonObject | undefined;
  /** Limits of the agent's whole lifetime. Default: none. */
  readonly budget?: Budget | undefined;
  /** Initial conversation of a new agent; ignored for an existing one. Default: none. */
  readonly messages?: AgentStartOptions["messages"];
  /** Results in the place of tools, which the server accepts from this request. Default: none. */
  readonly stubs?: AgentStartOptions["stubs"];
}

const MOST_DECIDED = 100_000;

/**
 * The operations of one identity on a runtime, with the rules that all surfaces share.
 *
 * 1. Each lookup checks the owner. The answer for an agent of another owner, or without one, is the same as for a
 *    missing agent.
 * 2. A client's name only refers to agents of this caller.
 * 3. A plain message never approves a call, and never answers a client tool.
 * 4. The same idempotency key starts the same turn, gives the same answer, and creates the same agent.
 */
export class Caller {
  readonly identity: Identity;
  readonly runtime: Runtime;
  /** Its schedules. */
  readonly schedules: CallerSchedules;
  readonly #dependencies: CallerDependencies;

  constructor(identity: Identity, dependencies: CallerDependencies) {
    this.identity = identity;
    this.runtime = dependencies.runtime;
    this.#dependencies = dependencies;
    const { runtime, clock, limits, admitTurn } = dependencies;
    this.schedules = new CallerSchedules({
      runtime,
      clock,
      ownerId: identity.userId,
      limits: limits ?? limitsAtWork(),
      admitTurn,
      root: async (agentId) => await this.root(agentId),
      stranger: (exists) => this.#stranger("schedule", exists),
    });
  }

  get ownerId(): string {
    return this.identity.userId;
  }

  get tenant(): string {
    return this.runtime.tenant;
  }

  /** The caller's identity for turns and tools. */
  get auth(): Auth {
    const { userId, credentials } = this.identity;
    return credentials === undefined ? { actorId: userId } : { actorId: userId, credentials };
  }

  /** An agent of this caller, including subagents. Rejects with `NotFoundError`. */
  async agent(agentId: string): Promise<Agent> {
    return await this.#own(agentId, "agent");
  }

  /** A root agent of this caller. Rejects with `NotFoundError`. */
  async root(agentId: string): Promise<Agent> {
    const agent = await this.#own(agentId, "agent");
    if (agent.rootAgentId !== agentId) throw this.#stranger("agent", false);
    return agent;
  }

  /** Deletes a root agent of this caller. Rejects with `NotFoundError`, and with `AgentBusyError` while a turn is open. */
  async deleteAgent(agentId: string, options: { readonly abort: boolean }): Promise<DeletedTree> {
    await this.root(agentId);
    const { trees } = await this.runtime.delete(agentId, { ...options, by: "owner" });
    const [deleted] = trees;
    // `delete()` reports the named tree first.
    if (!deleted) throw this.#stranger("agent", false);
    return deleted;
  }

  /** A started turn, open or ended. Rejects with `NotFoundError`. */
  async turn(turnId: string): Promise<{ readonly agent: Agent; readonly turn: Turn; readonly turnId: string }> {
    const agent = await this.#own(agentOfTurn(turnId), "turn");
    const number = numberOfTurn(turnId);
    if (turnId !== turnIdOf(agent.agentId, number) || !(number >= 1)) throw this.#stranger("turn", false);
    const turn = agent.turn(turnId);
    await this.#known("turn", turn.id);
    return { agent, turn, turnId };
  }

  /** A request in any state. Rejects with `NotFoundError`. */
  async request(requestId: string): Promise<AgentRequest> {
    const agentId = agentOfTurn(requestId);
    await this.#ownRecord(agentId, "request");
    const request = await this.runtime.stores.request({ tenant: this.tenant, agentId }, requestId);
    if (!request) throw this.#stranger("request", false);
    return request;
  }

  /** Root agents, newest first. */
  async agents(page: PageOptions & { readonly sessionId?: string | undefined } = {}): Promise<Page<AgentRecord>> {
    const { sessionId, after } = page;
    const limit = limitOf(page);
    const { ownerId } = this;
    const found = await this.runtime.list({
      ownerId,
      sessionId,
      rootsOnly: true,
      order: "newest",
      limit: limit + 1,
      after,
    });
    return pageOf(found, limit, formatAgentCursor);
  }

  /** Turns of root agents, the most recently changed first. */
  async turns(
    page: PageOptions & Pick<TurnFilter, "agentId" | "sessionId" | "status"> = {},
  ): Promise<Page<TurnRecord>> {
    const limit = limitOf(page);
    const found = await this.runtime.turns({ ...page, ownerId: this.ownerId, limit: limit + 1 });
    return pageOf(found, limit, formatTurnCursor);
  }

  /** Requests of one tree or of all agents, in the order of their opening. Default: open ones. */
  async requests(
    page: PageOptions & {
      readonly rootAgentId?: string | undefined;
      readonly status?: AgentRequest["status"] | undefined;
    },
  ): Promise<Page<AgentRequest>> {
    const { rootAgentId, status = "open", after } = page;
    const limit = limitOf(page);
    const { ownerId } = this;
    if (rootAgentId !== undefined) await this.root(rootAgentId);
    if (after !== undefined) await this.request(after);
    const found = await this.runtime.requests({ ownerId, rootAgentId, status, limit: limit + 1, after });
    return pageOf(found, limit, ({ requestId }) => requestId);
  }

  /** All decided requests of a tree, in the order of their opening; empty for another caller's tree. */
  async decidedRequests(rootAgentId: string): Promise<readonly AgentRequest[]> {
    const { ownerId } = this;
    return await this.runtime.requests({ ownerId, rootAgentId, status: "decided", limit: MOST_DECIDED });
  }

  /** The id of this caller's agent with a name. */
  agentIdOf(definition: string, name: string): string {
    return agentIdOfName({ tenant: this.tenant, ownerId: this.ownerId, definition }, name);
  }

  /** Starts the agent of the name, the id or the key; creates it if it does not exist. */
  async openAgent(options: NewAgentOptions): Promise<Agent> {
    return (await this.createAgent(options)).agent;
  }

  /**
   * Like `openAgent`. `isReplayed`: the agent already existed. Rejects with `ServerError` (`key_reused`) if the agent
   * of a key was created by a different request, and with `InvalidInputError` if an existing agent has other stubs, or has stubs and none
   * are given: only tests may reach it by its name.
   */
  async createAgent(options: NewAgentOptions): Promise<{ readonly agent: Agent; readonly isReplayed: boolean }> {
    const { key, name, agentId: given, definition, metadata = {}, ...rest } = options;
    assertUnmarked(metadata);
    const scope = { tenant: this.tenant, ownerId: this.ownerId };
    const named = given ?? (name === undefined ? undefined : agentIdOfName({ ...scope, definition }, name));
    const agentId = named ?? (key === undefined ? createId() : agentIdOfKey(scope, key));
    const before = await this.runtime.stores.readAgent({ tenant: this.tenant, agentId });
    if (before !== undefined && before.ownerId !== this.ownerId) throw this.#stranger("agent", true);
    // For a named agent, the key is the turn's.
    const mark =
      key === undefined || named !== undefined ? {} : { [creationMark]: contentHash({ ...options, key: undefined }) };
    if (before !== undefined) assertSame(before.metadata, mark);
    if (before !== undefined) assertSameStubs(before, options.stubs);
    const agent = await this.runtime.agent(before?.definition.name ?? definition, {
      ...rest,
      ownerId: this.ownerId,
      agentId,
      metadata: { ...metadata, ...mark },
    });
    if (agent.ownerId !== this.ownerId) throw this.#stranger("agent", true);
    assertSame(agent.state.metadata ?? {}, mark);
    if (agent.isStubbed !== (options.stubs !== undefined)) {
      throw new InvalidInputError("another request has just created this agent, with other stubs; use another key");
    }
    return { agent: await this.#started(agent), isReplayed: before !== undefined };
  }

  /** Starts a turn of this caller's agent. */
  async startTurn(agent: Agent, input: Content | null, options: StartTurnOptions = {}): Promise<StartedTurn> {
    const { key, ...turnOptions } = options;
    const definition = this.runtime.definitions.get(agent.definition.name);
    assertNotRaised(definition, options.budget, this.#dependencies.clock.now());
    assertNotDearer(definition, options.settings);
    const release = await this.#dependencies.admitTurn();
    try {
      const known = key === undefined ? {} : { key: turnKeyOf(key) };
      const turn = agent.executeTurn(input, { ...turnOptions, ...known, auth: this.auth });
      const turnId = await turn.id;
      return { agent, turn, turnId, isReplayed: await turn.isReplayed, became: "turn" };
    } finally {
      release();
    }
  }

  /**
   * Gives an input to the agent's open turn, or to the given one; otherwise it opens a turn. It counts as a turn for the caller's limits,
   * because it may open one.
   */
  async steer(
    agent: Agent,
    input: Content,
    { key, turnId }: Pick<StartTurnOptions, "key"> & { readonly turnId?: string | undefined } = {},
  ): Promise<SteerAnswer> {
    const release = await this.#dependencies.admitTurn();
    try {
      const known = key === undefined ? {} : { key: turnKeyOf(key) };
      const target = turnId === undefined ? agent : agent.turn(turnId);
      return await target.steer(input, { ...known, auth: this.auth });
    } finally {
      release();
    }
  }

  /**
   * A message without a request id. For a waiting turn, it is the answer to the only open question, or the reason to
   * reject the turn's approvals. Rejects with `AgentBusyError` while the turn works, if several requests could be
   * meant, and if only a client tool or credentials would help; the error's message names the open requests. With a key
   * the message can be sent again: it takes effect once, and later attempts return the same outcome. Other content
   * rejects with `TurnConflictError` or `ServerError` (`key_reused`).
   */
  async plainMessage(agent: Agent, content: Content, options: StartTurnOptions = {}): Promise<StartedTurn> {
    return await sendPlainMessage(this, { agent, content, options });
  }

  /**
   * Like `plainMessage`, but for a given turn: never starts another. Rejects with `AgentBusyError` if the turn does not
   * wait, unless a message with the same key has already answered it.
   */
  async answerTurn(
    { agent, turnId }: Pick<StartedTurn, "agent" | "turnId">,
    content: Content,
    options: Pick<StartTurnOptions, "key"> = {},
  ): Promise<StartedTurn> {
    return await answerTurn(this, { agent, content, options }, turnId);
  }

  /**
   * Decides a request of this caller's agents. With a key, the same decision can be sent again. Rejects with
   * `NotFoundError`, `RequestConflictError` and `ServerError` (`key_reused`).
   */
  async decide(
    requestId: string,
    { key, ...decide }: Omit<Decide, "by" | "key"> & { readonly key?: RequestKey | undefined },
  ): ReturnType<Runtime["decide"]> {
    const request = await this.request(requestId);
    const isMore = request.kind === "budget" && decide.verdict !== "rejected";
    // Callers are the owners of the agents whose requests they see: none of them may decide what the whole tenant spends.
    if (isMore && outerPartsOf(budgetQuestionSchema.parse(request.arguments).accountId)?.scope === "tenant") {
      throw new PolicyRefusedError(
        `request "${requestId}" asks for more of the tenant's budget, which callers of the server never grant; decide it with runtime.decide() or the command line`,
        { details: { requestId, by: this.ownerId } },
      );
    }
    // A caller that may only lower budgets must not raise one by a request of its own agent.
    if (isMore && request.isGuarded !== true) {
      throw new PolicyRefusedError(
        `request "${requestId}" asks for more budget, which callers of the server may only grant under a rule: set mayDecide in createRuntime(), or decide it with runtime.decide() or the command line`,
        { details: { requestId, by: this.ownerId } },
      );
    }
    try {
      return await this.runtime.decide(requestId, { ...decide, by: this.ownerId, key: key && turnKeyOf(key) });
    } catch (error) {
      throw isKeyTaken(error) ? keyReused() : error;
    }
  }

  /**
   * Like `decide`, but accepts an earlier decision with the same result from any client. `isNew`: this call decided.
   */
  async decideOnce(
    requestId: string,
    decide: Parameters<Caller["decide"]>[1],
    isAlike: (request: AgentRequest) => boolean,
  ): Promise<{ readonly request: AgentRequest; readonly isNew: boolean }> {
    try {
      const { isReplayed = false, ...request } = await this.decide(requestId, decide);
      return { request, isNew: !isReplayed };
    } catch (error) {
      if (!(error instanceof RequestConflictError) && !isKeyReused(error)) throw error;
      const request = await this.request(requestId);
      if (isAlike(request)) return { request, isNew: false };
      throw error;
    }
  }

  /** Snapshot of a tree of this caller, with its cursor. Rejects with `NotFoundError`. */
  async head(rootAgentId: string): Promise<TreeSnapshot> {
    await this.root(rootAgentId);
    return await this.runtime.head(rootAgentId);
  }

  /** Events of a tree of this caller. `after` also accepts `"now"`. The first read rejects with `NotFoundError`. */
  async *events(
    rootAgentId: string,
    options: { readonly after?: string | undefined; readonly signal?: AbortSignal | undefined } = {},
  ): AsyncGenerator<TroupeEvent, void, undefined> {
    await this.root(rootAgentId);
    yield* this.runtime.follow(rootAgentId, options);
  }

  async #own(agentId: string, kind: Kind): Promise<Agent> {
    const agent = await this.#known(kind, this.runtime.find(agentId));
    if (agent.ownerId !== this.ownerId) throw this.#stranger(kind, true);
    return agent;
  }

  /** Replaces not-found errors, because their messages contain ids, which answers must not reveal. */
  async #known<T>(kind: Kind, found: Promise<T>): Promise<T> {
    try {
      return await found;
    } catch (error) {
      // A deleted agent has no owner any more, so that its existence must not be revealed.
      const isAbsent = error instanceof NotFoundError || error instanceof AgentDeletedError;
      throw isAbsent ? this.#stranger(kind, false) : error;
    }
  }

  async #ownRecord(agentId: string, kind: Kind): Promise<AgentRecord> {
    const record = await this.runtime.stores.readAgent({ tenant: this.tenant, agentId });
    if (record?.ownerId !== this.ownerId) throw this.#stranger(kind, record !== undefined);
    return record;
  }

  /** The message contains no id, so answers for unknown ids and for those of other callers are equal byte for byte. */
  #stranger(kind: Kind, exists: boolean): Error {
    if (exists && this.#dependencies.deniesStrangers) return unauthenticated(false);
    return new NotFoundError(`there is no such ${kind}`);
  }

  /** Starts a new agent. Waits if another server is starting the same agent and briefly holds its lease. */
  async #started(agent: Agent): Promise<Agent> {
    let known = agent;
    for (let attempt = 1; ["created", "shutdown"].includes(known.state.status); attempt += 1) {
      try {
        await known.start();
        return known;
      } catch (error) {
        const isTaken = error instanceof AlreadyOwnedError || error instanceof LeaseLostError;
        if (!isTaken || attempt >= MOST_STARTS) throw error;
      }
      await this.#dependencies.clock.sleep(START_PAUSE_MS * attempt);
      known = await this.runtime.find(agent.agentId);
    }
    return known;
  }
}

type Kind = "agent" | "turn" | "request" | "schedule";

const MOST_STARTS = 10;
const START_PAUSE_MS = 20;
