import type { InspectionEvent } from "xstate";
import type { AgentDefinition } from "../../agents/index.ts";
import type { Clock } from "../../base/index.ts";
import type { Account, Budget } from "../../budget/index.ts";
import type { PriceTable } from "../../model/index.ts";
import type { Queues } from "../../queues/index.ts";
import type {
  AgentRecord,
  AgentRequest,
  AgentState,
  Artifact,
  Content,
  JsonObject,
  Lifecycle,
  Message,
  StoredError,
  TraceEntry,
  TroupeEvent,
} from "../../state/index.ts";
import type { AgentFilter, Stores } from "../../stores/index.ts";
import type { Auth } from "../../tools/index.ts";
import type { DrainReport, RuntimeDrainOptions } from "./drain-options.ts";
import type { RuntimeShutdownOptions } from "./leaving.ts";
import type { Overview } from "../projections/overview.ts";
import type { Projections } from "./projection-stores.ts";
import type { Decide, DecisionAttempt, RequestListOptions } from "./request-types.ts";
import type { Role, RoleOptions } from "./roles.ts";
import type { HealthOptions, RuntimeHealth, RuntimeMetrics } from "./runtime-health.ts";
import type { EventObserver, Turn, TurnOptions } from "./turn-types.ts";

export interface AuthRequest {
  readonly actorId: string;
  readonly agentId: string;
  readonly turnId: string;
  /** A turn is carried on after a restart, or a tool with `auth: "required"` has none. */
  readonly reason: "restart" | "tool";
}

export interface RuntimeOptions extends RoleOptions {
  /** Definitions that can be started by name; what they can spawn is registered with them. */
  readonly agents: readonly AgentDefinition[];
  /** Where the truth lives. Default: `memoryStores()`. */
  readonly stores?: Stores | undefined;
  /** Stores of your own that are given copies of messages, artifacts and states, after the commit (row L11). */
  readonly projections?: Projections | undefined;
  /**
   * Prices in dollars per million tokens, by model name or `provider/name`. A definition's own `price` wins over them, and they
   * win over the public prices that are built in. What they hold is checked at once.
   */
  readonly prices?: PriceTable | undefined;
  /**
   * Tells costs in results, events and traces also where no `maxCost` binds, by the built-in prices, which are loaded for it
   * (20 MB). A cost that is not known is null, never 0. Default false: then costs come from `price` and `prices` alone.
   */
  readonly showCosts?: boolean | undefined;
  /** Part of every key. Default `default`. */
  readonly tenant?: string | undefined;
  /** Times are taken in whole milliseconds; where it shows none it counts as standing still. Default: the system's. */
  readonly clock?: Clock | undefined;
  /** Numbers in [0, 1) for jitter; `Math.random` takes the place of any other. Default `Math.random`. */
  readonly random?: (() => number) | undefined;
  /** How long a process that gives no heartbeat is still believed to live, in milliseconds. Default 10,000. */
  readonly leaseMs?: number | undefined;
  /** Asked for credentials when a turn goes on that was started in another process. */
  readonly resolveAuth?: ((request: AuthRequest) => Auth | undefined | Promise<Auth | undefined>) | undefined;
  /** Who may decide which request. Default: whoever can call the runtime. */
  readonly mayDecide?: ((attempt: DecisionAttempt) => boolean | Promise<boolean>) | undefined;
  /** Every XState inspection event of every live agent, with the agent's id. They are provisional until the commit. */
  readonly onInspect?: ((agentId: string, event: InspectionEvent) => void) | undefined;
  /** Discards and restores an agent after each of its commits. For tests of recovery: it is slow. */
  readonly restoreAfterCommit?: boolean | undefined;
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

export interface GetMessagesOptions {
  /** Only the newest so many. Default: all. */
  readonly maxMessages?: number | undefined;
  /** Leave out what only traces intermediate steps (row S4). Default false. */
  readonly withoutTrace?: boolean | undefined;
}

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

export interface PauseOptions {
  readonly now?: boolean | undefined;
}

export interface ResumeOptions {
  readonly auth?: Auth | undefined;
}

export interface SpawnedAgent {
  readonly agent: Agent;
  readonly turn: Turn;
}

export interface SpawnAgentOptions {
  readonly key: string;
  readonly budget?: Budget | undefined;
}

/** Which agents of the runtime's tenant are listed, in which order, and how many. */
export type AgentListOptions = Omit<AgentFilter, "tenant">;

export interface FollowOptions {
  /** Continue after this cursor; absent: from the beginning of the journal. */
  readonly after?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The composition root's product: everything that lives in one process. */
export interface Runtime {
  readonly stores: Stores;
  readonly queues: Queues;
  readonly role: Role;
  readonly tenant: string;
  /** Live view of all trees of this process: state, step, usage, budgets. */
  readonly overview: Overview;
  /** Creates the agent if there is none of that id; it still has to be started. */
  agent(name: string, options?: AgentStartOptions): Promise<Agent>;
  /** An existing agent of any process; throws `NotFoundError`. */
  find(agentId: string): Promise<Agent>;
  list(options?: AgentListOptions): Promise<AgentRecord[]>;
  accounts(rootAgentId: string): Promise<Account[]>;
  /** Requests that wait for somebody, oldest first. */
  requests(options?: RequestListOptions): Promise<AgentRequest[]>;
  /**
   * Decides a request, once, whichever process its agent lives in. Rejects with `RequestConflictError` when somebody was
   * faster or it has expired, `NotFoundError`, or `InvalidInputError` where the verdict or the arguments do not fit.
   */
  decide(requestId: string, decide: Decide): Promise<AgentRequest>;
  /** Every event of every live agent, ephemeral ones included. */
  subscribe(observer: EventObserver): { unsubscribe(): void };
  /**
   * Durable events of one tree from the journal, then live ones, without gap or double. Throws `NotFoundError` at the first event
   * where no such tree is stored.
   */
  follow(rootAgentId: string, options?: FollowOptions): AsyncIterable<TroupeEvent>;
  /**
   * Resolves when the projections have everything that is saved of a tree now; at once without projections. A store that
   * fails is tried until it recovers; rejects with `TurnInterruptedError` when the runtime is shut down before.
   */
  projected(rootAgentId: string): Promise<void>;
  /**
   * Takes up every unfinished agent of the store that nobody owns; gives their ids. Projections of all trees are brought up to
   * date, in the background.
   */
  recover(): Promise<string[]>;
  /** Asks the stores, sends a canary through the queues, and looks whether the event loop turns. What it finds never rejects. */
  health(options?: HealthOptions): Promise<RuntimeHealth>;
  /** Plain numbers of this process, and of the queues that it has used. */
  metrics(): Promise<RuntimeMetrics>;
  /**
   * Leaves within the time: nothing new is begun, each turn comes to rest between two steps, and its agent is given back for
   * others to go on with; what is still under way shortly before the end is cut off, and repeated where it may be. Then it
   * shuts down. Called again it waits for the same end. Rejects with `InvalidInputError` for what is no time.
   */
  drain(options?: RuntimeDrainOptions): Promise<DrainReport>;
  /**
   * Pauses nothing: stores what has happened, gives leases back, stops actors. Open turns are carried on at the next start. It
   * keeps its time, also where the stores do not answer, and says in a process warning (`TROUPE_LEFT_BEHIND`) what it had to
   * leave behind. Rejects with `InvalidInputError` for what is no time.
   */
  shutdown(options?: RuntimeShutdownOptions): Promise<void>;
}
