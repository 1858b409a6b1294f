import type { InspectionEvent, Observer } from "xstate";
import type { AgentDefinition } from "../agents/index.ts";
import type { Clock } from "../base/index.ts";
import type { Account, Budget } from "../budget/index.ts";
import type {
  AgentRecord,
  AgentState,
  Artifact,
  Content,
  ExecutionState,
  ExecutionStatus,
  JsonObject,
  Lifecycle,
  Message,
  StopReason,
  StopSignal,
  StoredError,
  TraceEntry,
  TroupeEvent,
  Usage,
} from "../state/index.ts";
import type { Stores } from "../stores/index.ts";
import type { Auth } from "../tools/index.ts";
import type { Overview } from "./overview.ts";

export interface AuthRequest {
  readonly actorId: string;
  readonly agentId: string;
  readonly turnId: string;
}

export interface RuntimeOptions {
  /** Definitions that can be started by name; what they can spawn is registered with them. */
  readonly agents: readonly AgentDefinition[];
  /** Where the truth lives. Default: `memoryStores()`. */
  readonly stores?: Stores | undefined;
  /** Part of every key. Default `default`. */
  readonly tenant?: string | undefined;
  readonly clock?: Clock | undefined;
  /** Numbers in [0, 1) for jitter. Default `Math.random`. */
  readonly random?: (() => number) | undefined;
  /** How long a process that gives no heartbeat is still believed to live, in milliseconds. Default 10,000. */
  readonly leaseMs?: number | undefined;
  /** Asked for credentials when a turn goes on that was started in another process. */
  readonly resolveAuth?: ((request: AuthRequest) => Auth | undefined | Promise<Auth | undefined>) | undefined;
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
}

export interface TurnOptions {
  readonly auth?: Auth | undefined;
  /** Limits of this turn; they take the place of the definition's, name by name. */
  readonly budget?: Budget | undefined;
  /** What to do while another turn is open: be refused (default), or wait in line. */
  readonly ifBusy?: "refuse" | "queue" | undefined;
}

/** How a turn ended. */
export interface TurnResult {
  readonly agentId: string;
  readonly turnId: string;
  readonly status: Extract<ExecutionStatus, "completed" | "stopped" | "failed">;
  /** The answer; for a stopped turn what there was, or a plain sentence that says so. */
  readonly text: string;
  readonly stopReason: StopReason;
  /** What stopped it, naming the account where a limit did. */
  readonly signal: StopSignal | null;
  /** Tokens of the agent's own model calls. */
  readonly usage: Usage;
  /** Dollars of the agent's own model calls; null when a price is not known. */
  readonly cost: number | null;
  readonly steps: number;
  readonly toolCalls: number;
  readonly error: StoredError | null;
  /** All errors, those of tools included. */
  readonly errors: readonly StoredError[];
  /** The turn as rows S see it; null when it ended before this process looked. */
  readonly execution: ExecutionState | null;
}

/** How a turn came to rest: ended, or waiting for somebody. */
export type TurnRest = TurnResult | { readonly status: "waiting"; readonly turnId: string; readonly reason: "paused" };

export type EventObserver = Partial<Observer<TroupeEvent>> | ((event: TroupeEvent) => void);

/**
 * One turn under way: async-iterable and subscribable (RxJS `from` takes it), not thenable. A turn that fails ends its
 * stream with `turn.failed`; only a refused command or a broken runtime rejects.
 */
export interface Turn extends AsyncIterable<TroupeEvent> {
  /** Known once the turn was accepted. Rejects when it was refused. */
  readonly id: Promise<string>;
  /** Settles when the turn has ended. Rejects with `AgentBusyError` and the like when it was refused. */
  readonly result: Promise<TurnResult>;
  /** Settles also when the turn waits. */
  readonly settled: Promise<TurnRest>;
  subscribe(observer: EventObserver): { unsubscribe(): void };
  /** Ends the turn and all children that it awaits; resolves when the wish is durable. */
  abort(reason?: string): Promise<void>;
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
  /** Any turn of this agent by its id, ended ones too. */
  turn(turnId: string): Turn;
  /** Holds the agent and its whole subtree at the next safe point; resolves when this agent has come to rest. */
  pause(): Promise<void>;
  resume(): Promise<void>;
  abort(reason?: string): Promise<void>;
  /** Saves and frees; only `start()` brings it back. An open turn is carried on then. */
  shutdown(): Promise<void>;
  getMessages(options?: GetMessagesOptions): Promise<Message[]>;
  getArtifacts(): Promise<Omit<Artifact, "content">[]>;
  getArtifact(artifactId: string): Promise<Artifact | undefined>;
  /** Trace of one turn, by default the last (row H5); derived from the journal. */
  getTrace(turnId?: string): Promise<TraceEntry[]>;
  /** The agent as one immutable value (row S1), from what is committed; ask it with `viewAgentState`. */
  getState(): Promise<AgentState>;
  /** Starts a subagent from code; the same `key` is the same child. */
  spawn(definition: AgentDefinition, input: string, options: SpawnAgentOptions): Promise<SpawnedAgent>;
}

export interface SpawnedAgent {
  readonly agent: Agent;
  readonly turn: Turn;
}

export interface SpawnAgentOptions {
  readonly key: string;
  readonly budget?: Budget | undefined;
}

export interface AgentListOptions {
  readonly rootAgentId?: string | undefined;
  readonly sessionId?: string | undefined;
  readonly ownerId?: string | undefined;
  readonly rootsOnly?: boolean | undefined;
  readonly limit?: number | undefined;
  readonly after?: string | undefined;
}

export interface FollowOptions {
  /** Continue after this cursor; absent: from the beginning of the journal. */
  readonly after?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

/** The composition root's product: everything that lives in one process. */
export interface Runtime {
  readonly stores: Stores;
  readonly tenant: string;
  /** Live view of all trees of this process: state, step, usage, budgets. */
  readonly overview: Overview;
  /** Creates the agent if there is none of that id; it still has to be started. */
  agent(name: string, options?: AgentStartOptions): Promise<Agent>;
  /** An existing agent of any process; throws `NotFoundError`. */
  find(agentId: string): Promise<Agent>;
  list(options?: AgentListOptions): Promise<AgentRecord[]>;
  accounts(rootAgentId: string): Promise<Account[]>;
  /** Every event of every live agent, ephemeral ones included. */
  subscribe(observer: EventObserver): { unsubscribe(): void };
  /** Durable events of one tree from the journal, then live ones, without gap or double. */
  follow(rootAgentId: string, options?: FollowOptions): AsyncIterable<TroupeEvent>;
  /** Takes up every unfinished agent of the store that nobody owns; gives their ids. */
  recover(): Promise<string[]>;
  /** Pauses nothing: drains what is committed, gives leases back, stops actors. Open turns are carried on at the next start. */
  shutdown(): Promise<void>;
}
