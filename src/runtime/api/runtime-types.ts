import type { InspectionEvent } from "xstate";
import type { AgentDefinition } from "../../agents/index.ts";
import type { Clock } from "../../base/index.ts";
import type { Account } from "../../budget/index.ts";
import type { PriceTable } from "../../model/index.ts";
import type { Queues } from "../../queues/index.ts";
import type { Json, AgentRecord, AgentRequest, TroupeEvent, TurnRecord } from "../../state/index.ts";
import type { AgentFilter, Stores, TurnFilter } from "../../stores/index.ts";
import type { Auth } from "../../tools/index.ts";
import type { Overview } from "../projections/overview.ts";
import type { Projections } from "./projection-stores.ts";
import type { Agent, AgentStartOptions, Decide, DecisionAttempt, RequestListOptions } from "./agent-types.ts";
import type { IdleOptions, Recovers, Role, WorkOf } from "./roles.ts";
import type { HealthOptions, RuntimeHealth, RuntimeMetrics } from "./runtime-health.ts";
import type { EventObserver } from "./turn-types.ts";

/** What `resolveAuth` is asked. */
export interface AuthRequest {
  /** The actor of the turn, as `auth.actorId` named it. */
  readonly actorId: string;
  /** The agent whose turn needs credentials. */
  readonly agentId: string;
  /** The turn that needs them. */
  readonly turnId: string;
  /**
   * `restart`: a turn is carried on after a restart; `tool`: a tool with `auth: "required"` has no credentials;
   * `projection`: a store of your own is written for the turn, which may have ended, and this process has none.
   */
  readonly reason: "restart" | "tool" | "projection";
}

/** Everything that a runtime can be given but its definitions and its role; `run()` and `createAgent()` take it too. */
export interface RuntimeSettings {
  /** Where everything is stored. They are closed with the runtime. Default: `memoryStores()`. */
  readonly stores?: Stores | undefined;
  /** How processes pass work to each other. They are closed with the runtime. Default: `localQueues()`. */
  readonly queues?: Queues | undefined;
  /** Stores of your own that get copies of messages, artifacts and states after the commit. Default: none. */
  readonly projections?: Projections | undefined;
  /**
   * Prices in dollars per million tokens, by model name or `provider/name`. A definition's own `price` takes precedence
   * over them, and they over the built-in public prices. They are checked at once. Default: none.
   */
  readonly prices?: PriceTable | undefined;
  /**
   * Reports costs in results, events and traces even without a `maxCost`, by the built-in prices, which are loaded for
   * it (20 MB). An unknown cost is null, never 0. Default false: then costs come from `price` and `prices` alone.
   */
  readonly showCosts?: boolean | undefined;
  /** Part of every key. Default `default`. */
  readonly tenant?: string | undefined;
  /** Read in whole milliseconds; if it returns no valid time, it counts as stopped. Default: the system's clock. */
  readonly clock?: Clock | undefined;
  /** Numbers in [0, 1) for jitter; any other result is replaced by one of `Math.random`. Default `Math.random`. */
  readonly random?: (() => number) | undefined;
  /** How long a process without a heartbeat still counts as alive, in milliseconds. Default 10,000. */
  readonly leaseMs?: number | undefined;
  /**
   * Gives the credentials when a turn that was started in another process goes on, or is copied to `projections`. Default:
   * none, so that such a turn waits for credentials where a tool requires them, and is copied without.
   */
  readonly resolveAuth?: ((request: AuthRequest) => Auth | undefined | Promise<Auth | undefined>) | undefined;
  /** Decides who may decide which request. Default: every caller of the runtime. */
  readonly mayDecide?: ((attempt: DecisionAttempt) => boolean | Promise<boolean>) | undefined;
  /**
   * When models are asked to stream: `watched`, only for a tree that has readers, or `always`, so that a reader who joins
   * in the middle of an answer sees the rest of it. Default `watched`: a whole answer takes less work.
   */
  readonly streaming?: "watched" | "always" | undefined;
  /** An observer as of `runtime.inspect()`, from the first agent on. Default: none. */
  readonly onInspect?: ((agentId: string, event: InspectionEvent) => void) | undefined;
  /**
   * Discards and restores an agent after each of its commits. Meant for tests of recovery, since it is slow. Default
   * false.
   */
  readonly restoreAfterCommit?: boolean | undefined;
  /**
   * Whose turns this process carries on when their process has died, looking every 0.3 to 0.45 leases. `all`: every turn
   * of the stores whose definition it was given. `own`: only turns in trees that it works on, for a program that runs one
   * job and must not begin another. Queues that other processes share pass on the work of all, so with them it is always
   * `all`. Default `all`; that of `run()` and `createAgent()` is `own`.
   */
  readonly recovers?: Recovers | undefined;
  /** When agents that have nothing to do leave the memory. Default: after 5 seconds, with at most 1,000 of them. */
  readonly idle?: IdleOptions | undefined;
}

/** What `createRuntime()` takes. */
export interface RuntimeOptions<Chosen extends Role = Role> extends RuntimeSettings {
  /** Definitions that can be started by name; definitions that they can spawn are registered too. */
  readonly agents: readonly AgentDefinition[];
  /** The part of this process in the work. `client` and `worker` need stores and queues that processes share. Default `all`. */
  readonly role?: Chosen | undefined;
  /**
   * How much work is done here; a `client` does none. Default: up to 50 woken agents, and one job of each tool's queue at
   * a time.
   */
  readonly work?: WorkOf<Chosen> | undefined;
}

/** Filter, order and limit for a list of the tenant's agents. */
export type AgentListOptions = Omit<AgentFilter, "tenant">;

/** Filter and limit for a list of turns. */
export type TurnListOptions = Omit<TurnFilter, "tenant">;

export interface FollowOptions {
  /** Continue after this cursor, or with `"now"` after what is stored at the call. Default: the journal's beginning. */
  readonly after?: string | undefined;
  /** Aborting it ends the stream. Default: none. */
  readonly signal?: AbortSignal | undefined;
}

/** A tree as it was at one moment, and where its events go on. */
export interface TreeSnapshot {
  /** `runtime.follow(rootAgentId, { after: cursor })` goes on from here, without a gap or a double. */
  readonly cursor: string;
  /** The root and all subagents. */
  readonly agents: readonly AgentRecord[];
  /** The budget accounts of the tree. */
  readonly accounts: readonly Account[];
  /** Open requests, oldest first. */
  readonly requests: readonly AgentRequest[];
}

export interface RuntimeShutdownOptions {
  /** Whole milliseconds from 0 to 2^31-1 for the whole shutdown, whether or not the stores answer. Default 8,000. */
  readonly timeoutMs?: number | undefined;
}

export interface RuntimeDrainOptions {
  /**
   * Whole milliseconds from 0 to 2^31-1 for the whole drain. Default 25,000: less than most process supervisors wait.
   */
  readonly timeoutMs?: number | undefined;
}

/** The work that `runtime.drain()` could not finish in its time. */
export interface DrainReport {
  /** Jobs that had not ended when the time was over, and agents whose model call or tool was cut off. */
  readonly left: number;
  /** Agents that could not be given back, or whose last steps could not be stored. */
  readonly leftBehind: readonly LeftBehind[];
}

/** An agent that a runtime could not leave properly within its time. */
export interface LeftBehind {
  /** The agent that was left. */
  readonly agentId: string;
  /** Its open turn, if there is one. */
  readonly turnId: string | null;
  /** The reason, and what becomes of the agent, in words. */
  readonly reason: string;
}

/** Everything that troupe runs in one process, as `createRuntime` makes it. */
export interface Runtime {
  /** Whether it takes commands: `false` from the call of `shutdown()` or `drain()` on. */
  readonly isOpen: boolean;
  /** The stores that it was given, or those in memory. */
  readonly stores: Stores;
  /** The queues that it was given, or those of this process. */
  readonly queues: Queues;
  /** The part of this process in the work. */
  readonly role: Role;
  /** Part of every key. */
  readonly tenant: string;
  /** The definitions that can be started by name, those of subagents included. */
  readonly definitions: ReadonlyMap<string, AgentDefinition>;
  /** Live view of all trees of this process: state, step, usage, budgets. */
  readonly overview: Overview;
  /** Creates the agent if there is none of that id; it must still be started. */
  agent<Output = Json>(
    /** A definition of this runtime, or its name. With the definition, results have the type of its `output`. */
    definition: AgentDefinition<Output> | string,
    options?: AgentStartOptions,
  ): Promise<Agent<Output>>;
  /** An existing agent of any process. Rejects with `NotFoundError` if there is none. */
  find(agentId: string): Promise<Agent<Json>>;
  /** Agents of the tenant that the filter lets through; at most 100, or `limit`. */
  list(options?: AgentListOptions): Promise<AgentRecord[]>;
  /**
   * Turns of root agents, also ended ones: the newest change of status first, then by id. At most 100, or `limit`; go on
   * with `after: formatTurnCursor(last)`.
   */
  turns(options?: TurnListOptions): Promise<TurnRecord[]>;
  /** The budget accounts of a tree; empty when no such tree is stored. */
  accounts(rootAgentId: string): Promise<Account[]>;
  /** Requests that wait for a decision, oldest first. */
  requests(options?: RequestListOptions): Promise<AgentRequest[]>;
  /**
   * Decides a request once, whichever process its agent lives in. Rejects with `RequestConflictError` when it was
   * already decided or has expired, `NotFoundError`, or `InvalidInputError` when the verdict or the arguments do not
   * fit. `isReplayed`: it was decided before, by this decision with this key.
   */
  decide(requestId: string, decide: Decide): Promise<AgentRequest & { readonly isReplayed?: true }>;
  /**
   * Every event of every live agent, ephemeral ones included. `streams: false`: models are not asked to stream because of this
   * observer, which gets live parts of answers only while others read them; telemetry listens so. Default true.
   */
  subscribe(observer: EventObserver, options?: { readonly streams?: boolean | undefined }): { unsubscribe(): void };
  /**
   * Calls the observer with every XState inspection event of every live agent, and the agent's id: first with an actor event and a
   * snapshot for each actor that is there, parents first, then with all that happens. Events are provisional until the commit. An error of
   * the observer becomes a process warning. The returned function ends it.
   */
  inspect(observer: (agentId: string, event: InspectionEvent) => void): () => void;
  /**
   * Durable events of one tree from the journal, then live ones, without gaps or duplicates. The first event rejects
   * with `NotFoundError` if no such tree is stored.
   */
  follow(rootAgentId: string, options?: FollowOptions): AsyncIterable<TroupeEvent>;
  /** A tree at one moment, with the cursor of that moment. Rejects with `NotFoundError` if no such tree is stored. */
  head(rootAgentId: string): Promise<TreeSnapshot>;
  /**
   * Resolves when the projections have everything that is now saved of a tree; at once without projections. A store
   * that fails is retried until it recovers. Rejects with `TurnInterruptedError` when the runtime is shut down first.
   */
  projected(rootAgentId: string): Promise<void>;
  /**
   * Activates every unfinished agent of the stores that no process owns, and returns their ids. Projections of all
   * trees are brought up to date in the background.
   */
  recover(): Promise<string[]>;
  /**
   * Asks the stores, sends a canary through the queues, and checks the event loop. Never rejects because of a problem
   * that it finds.
   */
  health(options?: HealthOptions): Promise<RuntimeHealth>;
  /** Counters and current values of this process, and of the queues that it has used. */
  metrics(): Promise<RuntimeMetrics>;
  /**
   * Leaves within the time: starts nothing new, lets each turn come to rest between two steps, and gives its agent back
   * for other processes to carry on. Work that still runs shortly before the end is cut off, and repeated where that is
   * allowed. Then it shuts down. A further call waits for the same end. Rejects with `InvalidInputError` for an invalid
   * time.
   */
  drain(options?: RuntimeDrainOptions): Promise<DrainReport>;
  /**
   * Stores what has happened, gives leases back and stops the actors, without pausing anything; open turns are carried
   * on at the next start. It keeps its time even if the stores do not answer, and reports in a process warning
   * (`TROUPE_LEFT_BEHIND`) what it had to leave behind. Rejects with `InvalidInputError` for an invalid time.
   */
  shutdown(options?: RuntimeShutdownOptions): Promise<void>;
}
