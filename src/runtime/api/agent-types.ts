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
  StoredError,
  TraceEntry,
} from "../../state/index.ts";
import type { RequestFilter } from "../../stores/index.ts";
import type { Auth } from "../../tools/index.ts";
import type { Turn, TurnOptions } from "./turn-types.ts";

/** A durable agent. `Output`: what the `output` schema of its definition gives, `Json` without one. */
export interface Agent<Output = unknown> {
  /** The id that `runtime.agent` or `runtime.find` got. */
  readonly agentId: string;
  /** The same as `agentId`. */
  readonly contextId: string;
  /** The root of its tree: the agent itself, unless it is a subagent. `runtime.follow` and `runtime.accounts` take it. */
  readonly rootAgentId: string;
  /** The agent's owner; `null` if it was created without one. */
  readonly ownerId: string | null;
  /** The group that the agent was created in; `null` if there is none. */
  readonly sessionId: string | null;
  /** The definition that the agent was created with; `version` is the hash of the parts that shape its behaviour. */
  readonly definition: { readonly name: string; readonly version: string };
  /** Milliseconds since the epoch. */
  readonly createdAt: number;
  /** The state now: status, number of turns, open turn. A new value after each change. */
  readonly state: AgentStatus;
  /** Loads the stored state. Ends `ready`, or carries on an interrupted turn, or stays `paused` if it was. */
  start(): Promise<void>;
  /** `null` continues the conversation without a new message. */
  executeTurn(input: Content | null, options?: TurnOptions): Turn<Output>;
  /** The open turn, for following one that another caller started; `undefined` if there is none. */
  openTurn(): Turn<Output> | undefined;
  /**
   * Any turn of this agent by its id, ended ones too. Throws `InvalidInputError` for an id that is not one of its
   * turns'; for a number that was not given yet the turn rejects with `NotFoundError`. A turn that an agent starts by
   * itself is announced by `turn.started`.
   */
  turn(turnId: string): Turn<Output>;
  /**
   * Holds the agent and its whole subtree at the next safe point; resolves when this agent is at rest. With `now` model
   * calls in flight are dropped, and repeated after the pause.
   */
  pause(options?: PauseOptions): Promise<void>;
  /** Ends a pause. With `auth` it also answers every `auth` request of the agent and its subtree. */
  resume(options?: ResumeOptions): Promise<void>;
  /**
   * Changes limits of the agent's life from now on; for a root agent they bind its whole tree. `null` removes a limit, one that is left
   * out stays. Works in any process and while a turn runs: calls that wait for room ask again. A limit may be set below what is used and
   * reserved: calls in flight go on, and the next one is refused. A subagent stays within what the accounts above it have left.
   *
   * Rejects with `InvalidInputError` for anything but limits and for an agent that was created without a budget, with
   * `AgentNotStartedError` for one that is shut down.
   */
  setBudget(budget: BudgetChange): Promise<void>;
  /** Open requests of the agent and its whole subtree. */
  requests(): Promise<AgentRequest[]>;
  /** Like `runtime.decide`, but only for requests of this agent and its subtree; others are not found. */
  decide(requestId: string, decide: Decide): Promise<AgentRequest>;
  /** How full the model's context window was after the last answer, in percent; null when that is not known. */
  contextPercent(): Promise<number | null>;
  /** Deletes the conversation and the artifacts; the journal keeps what was done. Rejects while a turn is open. */
  clear(): Promise<void>;
  /** Deletes the conversation and keeps the artifacts. Rejects while a turn is open. */
  resetConversation(): Promise<void>;
  /** Ends the open turn and all children that it waits for; resolves when the abort is stored. Without one nothing happens. */
  abort(reason?: string): Promise<void>;
  /**
   * Saves the whole current tree in one transaction, also in the middle of a turn; with `autoSave` it waits until all
   * is committed. After a restart the agent is as it was then. Rejects with `LeaseLostError` or `AlreadyOwnedError`
   * when another process has it.
   */
  saveState(): Promise<void>;
  /**
   * Saves the agent and all below it in this process, and frees their memory. Nothing begins any more when it is called; only
   * `start()` activates them again, and then carries on their open turns.
   */
  shutdown(): Promise<void>;
  /** The conversation, oldest first. */
  getMessages(options?: GetMessagesOptions): Promise<Message[]>;
  /** All versions of all artifacts, without their contents, oldest first. */
  getArtifacts(): Promise<Omit<Artifact, "content">[]>;
  /** By id, or by name: the given version, by default the newest. */
  getArtifact(idOrName: string, version?: number): Promise<Artifact | undefined>;
  /** Trace of one turn, by default the last; derived from the journal. */
  getTrace(turnId?: string): Promise<TraceEntry[]>;
  /** The agent's committed state as one immutable value; read it with `viewAgentState`. */
  getState(): Promise<AgentState>;
  /**
   * Starts a subagent from code; the same `key` gives the same child. Rejects with `NotFoundError` for a definition
   * that the runtime was not given.
   */
  spawn<Child>(
    definition: AgentDefinition<Child>,
    input: string,
    options: SpawnAgentOptions,
  ): Promise<SpawnedAgent<Child>>;
}

/** What `runtime.agent()` takes beside the definition's name. All but `agentId` counts only for a new agent. */
export interface AgentStartOptions {
  /** 1 to 128 characters of A-Z a-z 0-9 . _ @ -. Default: a random UUID. */
  readonly agentId?: string | undefined;
  /** Groups agents for clients; the runtime gives it no meaning. Default: none. */
  readonly sessionId?: string | undefined;
  /** The agent's owner; lists and the server filter by it. Default: none. */
  readonly ownerId?: string | undefined;
  /** Facts of your own, as JSON of up to 1,000,000 characters; instructions and tools can read them. Default: none. */
  readonly metadata?: JsonObject | undefined;
  /**
   * The conversation that a new agent begins with, stored together with it: up to 10,000 messages of 64 Mi characters
   * in all. An agent that exists keeps the conversation that it has. Default: none.
   */
  readonly messages?: readonly { readonly role: "user" | "assistant"; readonly content: Content }[] | undefined;
  /**
   * Limits of the agent's whole life, over all its turns. Default: none. For an agent that exists they must be those that it was created
   * with or those that it has now; `agent.setBudget()` changes them.
   */
  readonly budget?: Budget | undefined;
  /**
   * `false`: the agent and its subtree stay in memory until `saveState()`, `pause()` or `shutdown()` of the agent;
   * anything not saved by then is lost with the runtime. A stored agent is copied when it is started. Default true (row
   * L10).
   */
  readonly autoSave?: boolean | undefined;
}

/** Row L3, with the fields that a person looks for next. */
export interface AgentStatus {
  /** Where the agent is in its life: `ready`, `running`, `paused` and so on. */
  readonly status: Lifecycle;
  /** Turns that were started so far, the open one included. */
  readonly turnCount: number;
  /** Milliseconds since the epoch. */
  readonly lastActivity: number;
  /** The error of the last turn; `undefined` if it did not fail. */
  readonly error?: StoredError | undefined;
  /** The metadata with which the agent was created; `undefined` if there is none. */
  readonly metadata?: JsonObject | undefined;
  /** The open turn; `null` if there is none. */
  readonly openTurnId: string | null;
}

export interface PauseOptions {
  /** Whether model calls in flight are dropped, and repeated after the pause. Default false: they are waited for. */
  readonly now?: boolean | undefined;
}

export interface ResumeOptions {
  /** Credentials for the open turn, which also answer its `auth` requests. Default: none. */
  readonly auth?: Auth | undefined;
}

export interface GetMessagesOptions {
  /** Only the newest messages, up to this number. Default: all. */
  readonly maxMessages?: number | undefined;
  /** Leave out messages that only trace intermediate steps. Default false. */
  readonly withoutTrace?: boolean | undefined;
}

export interface SpawnAgentOptions {
  /** Names the child within its parent; the same key gives the same child. Not empty. */
  readonly key: string;
  /** Limits of the child's whole life, in addition to those of its ancestors. Default: none. */
  readonly budget?: Budget | undefined;
}

/** A subagent that code has started, and its turn. */
export interface SpawnedAgent<Output = unknown> {
  /** The child. */
  readonly agent: Agent<Output>;
  /** Its turn on the input. */
  readonly turn: Turn<Output>;
}

/** A decision that a caller tries to make; for `RuntimeOptions.mayDecide`. */
export interface DecisionAttempt {
  /** The request that is to be decided. */
  readonly request: AgentRequest;
  /** The person or program that decides, as the caller named it; `null` if the caller named none. */
  readonly by: string | null;
  /** The decision that the caller wants to make. */
  readonly verdict: RequestVerdict;
}

/** A decision on a request. */
export interface Decide {
  /** `approved`, `rejected` or `edited` for an approval, `answered` for a question or a client tool. */
  readonly verdict: Exclude<RequestVerdict, "expired">;
  /** The person who decides: kept for audit, and passed to `mayDecide`. Default: not named. */
  readonly by?: string | undefined;
  /** The reason; with `rejected` the model gets it. Default: none. */
  readonly reason?: string | undefined;
  /** For `edited`: replaces the model's arguments, and is validated like them. Default: the arguments as they are. */
  readonly arguments?: Json | undefined;
  /**
   * For `answered`: the result of the caller's tool, or the person's answer. Strings are passed as they are, other
   * values as JSON. Default: no text.
   */
  readonly result?: unknown;
  /** For `answered`: the tool failed, and `result` says why. Default false. */
  readonly isError?: boolean | undefined;
  /**
   * Hash of the arguments that were shown to the person who decides; a request with other arguments is not decided.
   * Default: not compared.
   */
  readonly argumentsHash?: string | undefined;
  /**
   * A name that the caller chose for the decision, so that the command can be sent again: 1 to 255 visible ASCII
   * characters. The same decision on the same request with the same key is answered with the request as it was decided,
   * whichever process asks. The turns of the tree's root agent and all decisions in the tree share their keys: a key
   * that means something else rejects with `RequestConflictError`, whose `details` name that (`key`, `turnId`,
   * `requestId`). Default: none.
   */
  readonly key?: string | undefined;
}

/** A filter for requests. Default: open ones. */
export type RequestListOptions = Omit<RequestFilter, "tenant">;
