import type { AgentDefinition } from "../../agents/index.ts";
import type { Budget } from "../../budget/index.ts";
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

/** A durable agent (rows L1 to L6). */
export interface Agent {
  readonly agentId: string;
  /** The same as `agentId` (row L2). */
  readonly contextId: string;
  readonly state: AgentStatus;
  /** Loads what is stored; ends `ready`, or carries an interrupted turn on, or stays `paused` if it was. */
  start(): Promise<void>;
  /** `null` continues the conversation without a new message. */
  executeTurn(input: Content | null, options?: TurnOptions): Turn;
  /** The open turn, for following one that somebody else started; undefined when there is none. */
  openTurn(): Turn | undefined;
  /**
   * Any turn of this agent by its id, ended ones too. Throws `InvalidInputError` for what is no id of one of its turns; of a number
   * that was never given the turn rejects with `NotFoundError`, unless the agent starts turns by itself.
   */
  turn(turnId: string): Turn;
  /**
   * Holds the agent and its whole subtree at the next safe point; resolves when this agent has come to rest. With `now` model
   * calls in flight are dropped, and repeated after the pause.
   */
  pause(options?: PauseOptions): Promise<void>;
  /** Ends a pause. With `auth` it also answers every `auth` request of the agent and its subtree. */
  resume(options?: ResumeOptions): Promise<void>;
  /** Open requests of the agent and its whole subtree. */
  requests(): Promise<AgentRequest[]>;
  /** As `runtime.decide`, for requests of this agent and its subtree alone: others are not found. */
  decide(requestId: string, decide: Decide): Promise<AgentRequest>;
  /** How full the model's context window was after the last answer, in percent; null when that is not known. */
  contextPercent(): Promise<number | null>;
  /** Forgets the conversation and the artifacts for good; the journal keeps what was done. Rejects while a turn is open. */
  clear(): Promise<void>;
  /** Forgets the conversation and keeps the artifacts (row H9). Rejects while a turn is open. */
  resetConversation(): Promise<void>;
  abort(reason?: string): Promise<void>;
  /**
   * Saves the whole tree as it stands, in one transaction, mid-turn too; with `autoSave` it waits until all is committed. After
   * a restart the agent is as it was then. Rejects with `LeaseLostError` or `AlreadyOwnedError` when another process has it.
   */
  saveState(): Promise<void>;
  /** Saves and frees; only `start()` brings it back. An open turn is carried on then. */
  shutdown(): Promise<void>;
  getMessages(options?: GetMessagesOptions): Promise<Message[]>;
  getArtifacts(): Promise<Omit<Artifact, "content">[]>;
  /** By id, or by name: the newest version, or the one that is asked for. */
  getArtifact(idOrName: string, version?: number): Promise<Artifact | undefined>;
  /** Trace of one turn, by default the last (row H5); derived from the journal. */
  getTrace(turnId?: string): Promise<TraceEntry[]>;
  /** The agent as one immutable value (row S1), from what is committed; ask it with `viewAgentState`. */
  getState(): Promise<AgentState>;
  /**
   * Starts a subagent from code; the same `key` is the same child. Rejects with `NotFoundError` for a definition that the runtime was
   * not given.
   */
  spawn(definition: AgentDefinition, input: string, options: SpawnAgentOptions): Promise<SpawnedAgent>;
}

export interface AgentStartOptions {
  /** 1 to 128 characters of A-Z a-z 0-9 . _ @ -. Default: a random UUID. */
  readonly agentId?: string | undefined;
  /** Client-facing grouping of agents, nothing more. */
  readonly sessionId?: string | undefined;
  readonly ownerId?: string | undefined;
  readonly metadata?: JsonObject | undefined;
  /** Limits of the agent's whole life, over all its turns. Default: none. */
  readonly budget?: Budget | undefined;
  /**
   * `false`: the agent and all below it stay in memory until `saveState()`, `pause()` or `shutdown()` of the agent; what is
   * not saved then is gone with the runtime. One that is stored is copied when it is started. Default true (row L10).
   */
  readonly autoSave?: boolean | undefined;
}

/** Row L3, with what a person asks next. */
export interface AgentStatus {
  readonly status: Lifecycle;
  readonly turnCount: number;
  /** Milliseconds since the epoch. */
  readonly lastActivity: number;
  readonly error?: StoredError | undefined;
  readonly metadata?: JsonObject | undefined;
  readonly openTurnId: string | null;
}

export interface PauseOptions {
  readonly now?: boolean | undefined;
}

export interface ResumeOptions {
  readonly auth?: Auth | undefined;
}

export interface GetMessagesOptions {
  /** Only the newest so many. Default: all. */
  readonly maxMessages?: number | undefined;
  /** Leave out what only traces intermediate steps (row S4). Default false. */
  readonly withoutTrace?: boolean | undefined;
}

export interface SpawnAgentOptions {
  readonly key: string;
  readonly budget?: Budget | undefined;
}

export interface SpawnedAgent {
  readonly agent: Agent;
  readonly turn: Turn;
}

/** Who wants to decide what; for `RuntimeOptions.mayDecide`. */
export interface DecisionAttempt {
  readonly request: AgentRequest;
  /** As the caller named them; null: nobody. */
  readonly by: string | null;
  readonly verdict: RequestVerdict;
}

/** A decision on a request. */
export interface Decide {
  readonly verdict: Exclude<RequestVerdict, "expired">;
  /** Who decides: kept for audit, and asked of `mayDecide`. */
  readonly by?: string | undefined;
  /** Why; with `rejected` the model is told. */
  readonly reason?: string | undefined;
  /** For `edited`: takes the place of the model's arguments, and is validated as they were. */
  readonly arguments?: Json | undefined;
  /** For `answered`: what the caller's tool gave, or the person said. Texts go as they are, other values as JSON. */
  readonly result?: unknown;
  /** For `answered`: the tool failed, and `result` says why. */
  readonly isError?: boolean | undefined;
  /** Hash of the arguments that were shown to whoever decides; a request about other ones is not decided. */
  readonly argumentsHash?: string | undefined;
}

/** Which requests: open ones where nothing else is said. */
export type RequestListOptions = Omit<RequestFilter, "tenant">;
