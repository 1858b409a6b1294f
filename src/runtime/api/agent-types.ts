import type { AgentDefinition } from "../../agents/index.ts";
import type { Budget, BudgetChange } from "../../budget/index.ts";
import type {
  AgentRequest,
  AgentState,
  Artifact,
  Content,
  Json,
  JsonObject,
  Lifecycle,
  Message,
  RequestVerdict,
  SessionStub,
  StoredError,
  StubReport,
  TraceEntry,
} from "../../state/index.ts";
import type { RequestFilter } from "../../stores/index.ts";
import type { Auth } from "../../tools/index.ts";
import type { Turn, TurnOptions, SteerAnswer, SteerOptions } from "./turn-types.ts";

/** A durable agent. `Output`: the type of its definition's `output` schema, `Json` without one. */
export interface Agent<Output = unknown> {
  /** The id that was passed to `runtime.agent` or `runtime.find`. */
  readonly agentId: string;
  /** The same as `agentId`. */
  readonly contextId: string;
  /**
   * Id of the root agent of its tree: the agent itself, unless it is a subagent. Use it with `runtime.follow` and
   * `runtime.accounts`.
   */
  readonly rootAgentId: string;
  /** The agent's owner; `null` if it was created without one. */
  readonly ownerId: string | null;
  /** The group that the agent was created in; `null` if it was created without one. */
  readonly sessionId: string | null;
  /** The definition that the agent was created with; `version` is the hash of the fields that affect behaviour. */
  readonly definition: { readonly name: string; readonly version: string };
  /** Whether the agent was created with stubs: its tools and those of its subagents do not run. */
  readonly isStubbed: boolean;
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  /** The current state: status, number of turns, open turn. A new object after each change. */
  readonly state: AgentStatus;
  /** Loads the stored state. The agent becomes `ready`, continues an interrupted turn, or stays `paused` if it was. */
  start(): Promise<void>;
  /** Starts a turn. `null` continues the conversation without a new message. */
  executeTurn(input: Content | null, options?: TurnOptions): Turn<Output>;
  /** `turn.steer()` for the open turn. Without an open turn, the input opens one. */
  steer(input: Content, options?: SteerOptions): Promise<SteerAnswer>;
  /** The open turn, to follow a turn that another caller started; `undefined` if none is open. */
  openTurn(): Turn<Output> | undefined;
  /**
   * Any turn of this agent by its id, including ended ones. Throws `InvalidInputError` for an id that does not belong to this
   * agent; for a number not used yet the turn rejects with `NotFoundError`. When an agent starts a turn by itself, it emits
   * `turn.started`.
   */
  turn(turnId: string): Turn<Output>;
  /**
   * Pauses the agent and its whole subtree at the next safe point; resolves when this agent is at rest. With `now`, model calls
   * in flight are dropped, and repeated after the pause.
   */
  pause(options?: PauseOptions): Promise<void>;
  /** Ends a pause. With `auth` it also answers all `auth` requests of the agent and its subtree. */
  resume(options?: ResumeOptions): Promise<void>;
  /**
   * Changes limits of the agent's life from now on; for a root agent they apply to its whole tree. `null` removes a limit; an
   * omitted limit is unchanged. Works in any process and during a turn: calls that wait for budget are checked again. A limit may
   * be set below the amount used and reserved: calls in flight continue, and the next one is refused. A subagent stays within the
   * rest of the accounts above it.
   *
   * Rejects with `InvalidInputError` for anything but limits and for an agent created without a budget, and with
   * `AgentNotStartedError` for an agent that was shut down.
   */
  setBudget(budget: BudgetChange): Promise<void>;
  /** Open requests of the agent and its whole subtree. */
  requests(): Promise<AgentRequest[]>;
  /** Like `runtime.decide`, but finds only requests of this agent and its subtree. */
  decide(requestId: string, decide: Decide): Promise<AgentRequest>;
  /** How full the model's context window was after the last answer, in percent; `null` if unknown. */
  contextPercent(): Promise<number | null>;
  /** Deletes the conversation and the artifacts; the journal keeps all entries. Rejects while a turn is open. */
  clear(): Promise<void>;
  /** Deletes the conversation and keeps the artifacts. Rejects while a turn is open. */
  resetConversation(): Promise<void>;
  /**
   * Ends the open turn and all children that it waits for; resolves when the abort is stored. Does nothing if no turn is open.
   */
  abort(reason?: string): Promise<void>;
  /**
   * Saves the whole current tree in one transaction, even during a turn; with `autoSave` it waits until everything is committed.
   * After a restart the agent is in this state again. Rejects with `LeaseLostError` or `AlreadyOwnedError` if another process
   * owns the agent.
   */
  saveState(): Promise<void>;
  /**
   * Saves the agent and all agents below it in this process, and frees their memory. No new work starts after the call; only
   * `start()` activates them again and then continues their open turns.
   */
  shutdown(): Promise<void>;
  /** The conversation, oldest first. */
  getMessages(options?: GetMessagesOptions): Promise<Message[]>;
  /** All versions of all artifacts without their content, oldest first. */
  getArtifacts(): Promise<Omit<Artifact, "content">[]>;
  /** Returns an artifact by id, or by name: the given version, by default the newest. */
  getArtifact(idOrName: string, version?: number): Promise<Artifact | undefined>;
  /** Trace of one turn, by default the last one; derived from the journal. */
  getTrace(turnId?: string): Promise<TraceEntry[]>;
  /** How the stubs of the agent's session were used, by all agents of its tree; empty lists for a session without stubs. */
  getStubs(): Promise<StubReport>;
  /** The agent's committed state as one immutable value; read it with `viewAgentState`. */
  getState(): Promise<AgentState>;
  /**
   * Starts a subagent from code; the same `key` returns the same child. Rejects with `NotFoundError` for a definition that the
   * runtime does not know.
   */
  spawn<Child>(
    definition: AgentDefinition<Child>,
    input: string,
    options: SpawnAgentOptions,
  ): Promise<SpawnedAgent<Child>>;
}

/** Options of `runtime.agent()` besides the definition's name. All but `agentId` apply only to a new agent. */
export interface AgentStartOptions {
  /** 1 to 128 characters of A-Z a-z 0-9 . _ @ -. Default: a random UUID. */
  readonly agentId?: string | undefined;
  /** Groups agents for clients; the runtime does not interpret it. Default: none. */
  readonly sessionId?: string | undefined;
  /** The agent's owner; lists and the server filter by it. Default: none. */
  readonly ownerId?: string | undefined;
  /** Your own data, as JSON of up to 1,000,000 characters; instructions and tools can read it. Default: none. */
  readonly metadata?: JsonObject | undefined;
  /**
   * The initial conversation of a new agent, stored together with the agent: up to 10,000 messages of 64 Mi characters in total.
   * An existing agent keeps its conversation. Default: none.
   */
  readonly messages?: readonly { readonly role: "user" | "assistant"; readonly content: Content }[] | undefined;
  /**
   * Limits of the agent's whole life, over all its turns. Default: none. For an existing agent they must equal the limits that it
   * was created with or its current ones; `agent.setBudget()` changes them.
   */
  readonly budget?: Budget | undefined;
  /**
   * Results in the place of tools, up to 200 stubs of 200,000 characters in total: for end-to-end tests. No function tool of the agent and
   * its subagents runs. The first stub that fits a call gives its result; a call that no stub fits fails its turn with the code
   * `stub_mismatch`. For an existing agent they must equal those that it was created with. Default: none, tools run.
   */
  readonly stubs?: readonly SessionStub[] | undefined;
  /**
   * `false` keeps the agent and its subtree in memory until `saveState()`, `pause()` or `shutdown()` of the agent; unsaved
   * changes are lost with the runtime. A stored agent is copied into memory when it is started. Default true.
   */
  readonly autoSave?: boolean | undefined;
}

/** The status of an agent, as `agent.state` returns it. */
export interface AgentStatus {
  /** The agent's lifecycle: `ready`, `running`, `paused` and so on. */
  readonly status: Lifecycle;
  /** Number of turns started so far, including the open one. */
  readonly turnCount: number;
  /** Milliseconds since the epoch. */
  readonly lastActivity: number;
  /** The error of the last turn; `undefined` if it did not fail. */
  readonly error?: StoredError | undefined;
  /** The metadata with which the agent was created; `undefined` if there is none. */
  readonly metadata?: JsonObject | undefined;
  /** Id of the open turn; `null` if none is open. */
  readonly openTurnId: string | null;
}

export interface PauseOptions {
  /** Whether model calls in flight are dropped, and repeated after the pause. Default false: the pause waits for them. */
  readonly now?: boolean | undefined;
}

export interface ResumeOptions {
  /** Credentials for the open turn, which also answer its `auth` requests. Default: none. */
  readonly auth?: Auth | undefined;
}

export interface GetMessagesOptions {
  /** Maximum number of messages to return, the newest ones. Default: all. */
  readonly maxMessages?: number | undefined;
  /** Whether to leave out intermediate messages of a turn. Default false. */
  readonly withoutTrace?: boolean | undefined;
}

export interface SpawnAgentOptions {
  /** Names the child within its parent; the same key returns the same child. Not empty. */
  readonly key: string;
  /** Limits of the child's whole life, in addition to those of its ancestors. Default: none. */
  readonly budget?: Budget | undefined;
}

/** A subagent started from code, and its turn. */
export interface SpawnedAgent<Output = unknown> {
  /** The child agent. */
  readonly agent: Agent<Output>;
  /** Its turn with the given input. */
  readonly turn: Turn<Output>;
}

/** A decision that a caller wants to make; input of `RuntimeOptions.mayDecide`. */
export interface DecisionAttempt {
  /** The request to decide. */
  readonly request: AgentRequest;
  /** The person or program that decides, as named by the caller; `null` if the caller named none. */
  readonly by: string | null;
  /** The decision that the caller wants to make. */
  readonly verdict: RequestVerdict;
  /** The arguments of the verdict `edited`; of a request for more budget the amount, `{ add }`. */
  readonly arguments?: Json | undefined;
}

/** A decision on a request. */
export interface Decide {
  /** `approved`, `rejected` or `edited` for an approval, `answered` for a question or a client tool. */
  readonly verdict: Exclude<RequestVerdict, "expired">;
  /** The person who decides: kept for audit, and passed to `mayDecide`. Default: not named. */
  readonly by?: string | undefined;
  /** The reason; with `rejected` it is sent to the model. Default: none. */
  readonly reason?: string | undefined;
  /** For `edited`: replaces the model's arguments, and is validated like them. Default: the arguments are unchanged. */
  readonly arguments?: Json | undefined;
  /**
   * For `answered`: the result of the caller's tool, or the person's answer. Strings are passed unchanged, other values as JSON.
   * Default: no text.
   */
  readonly result?: unknown;
  /** For `answered`: the tool failed, and `result` contains the reason. Default false. */
  readonly isError?: boolean | undefined;
  /**
   * Hash of the arguments that were shown to the person who decides; a request with other arguments is refused. Default: not
   * compared.
   */
  readonly argumentsHash?: string | undefined;
  /**
   * An idempotency key for the decision, so that the command can be sent again: 1 to 255 visible ASCII characters. The same
   * decision on the same request with the same key returns the decided request, in any process. The turns of the tree's root
   * agent and all decisions in the tree share their keys: a key used for another command rejects with `RequestConflictError`,
   * whose `details` name that command (`key`, `turnId`, `requestId`). Default: none.
   */
  readonly key?: string | undefined;
}

/** A filter for requests. Default: open ones. */
export type RequestListOptions = Omit<RequestFilter, "tenant">;
