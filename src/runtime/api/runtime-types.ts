import type { InspectionEvent } from "xstate";
import type { AgentDefinition } from "../../agents/index.ts";
import type { Clock } from "../../base/index.ts";
import type { Account } from "../../budget/index.ts";
import type { PriceTable } from "../../model/index.ts";
import type { Queues } from "../../queues/index.ts";
import type { Json, AgentRecord, AgentRequest, Schedule, TroupeEvent, TurnRecord } from "../../state/index.ts";
import type { AgentFilter, Stores, TurnFilter } from "../../stores/index.ts";
import type { Auth } from "../../tools/index.ts";
import type { Overview } from "../projections/overview.ts";
import type {
  DeleteOptions,
  DeleteOwnerOptions,
  DeletionReport,
  OwnerDeletionReport,
  RetentionOptions,
} from "./deletion-types.ts";
import type { AccountLimits, AccountsOptions } from "./accounts-options.ts";
import type { Projections } from "./projection-stores.ts";
import type { Agent, AgentStartOptions, Decide, DecisionAttempt, RequestListOptions } from "./agent-types.ts";
import type { IdleOptions, Recovers, Role, WorkOf } from "./roles.ts";
import type { HealthOptions, RuntimeHealth, RuntimeMetrics } from "./runtime-health.ts";
import type { ScheduleOptions, Schedules } from "./schedule-types.ts";
import type { EventObserver } from "./turn-types.ts";

/** The input of `resolveAuth`. */
export interface AuthRequest {
  /** The actor of the turn, from `auth.actorId`. */
  readonly actorId: string;
  /** The agent whose turn needs credentials. */
  readonly agentId: string;
  /** The turn that needs them. */
  readonly turnId: string;
  /**
   * `restart`: a turn continues after a restart; `tool`: a tool with `auth: "required"` has no credentials; `projection`: a store
   * of your own is written for the turn, which may have ended, and this process has no credentials.
   */
  readonly reason: "restart" | "tool" | "projection";
}

/** All options of a runtime except its definitions and its role; `run()` and `createAgent()` accept them too. */
export interface RuntimeSettings {
  /** Where everything is stored. The stores are closed with the runtime. Default: `memoryStores()`. */
  readonly stores?: Stores | undefined;
  /** How processes pass work to each other. The queues are closed with the runtime. Default: `localQueues()`. */
  readonly queues?: Queues | undefined;
  /** Stores of your own that receive copies of messages, artifacts and states after the commit. Default: none. */
  readonly projections?: Projections | undefined;
  /**
   * Prices in dollars per million tokens, by model name or `provider/name`. They override the built-in public prices; a
   * definition's own `price` overrides them. They are validated immediately. Default: none.
   */
  readonly prices?: PriceTable | undefined;
  /**
   * Reports costs in results, events and traces even without a `maxCost`, using the built-in prices, which are loaded for it (20
   * MB). An unknown cost is null, never 0. Default false: costs then come only from `price` and `prices`.
   */
  readonly showCosts?: boolean | undefined;
  /**
   * Budgets above the roots: what all agents of an owner, and all agents of the tenant, may spend together, by minute, hour, day, month or
   * in total. Give all processes the same ones. Default: none.
   */
  readonly accounts?: AccountsOptions | undefined;
  /** Prefix of every key. Default `default`. */
  readonly tenant?: string | undefined;
  /** Read in whole milliseconds; while it returns an invalid time, time stands still. Default: the system clock. */
  readonly clock?: Clock | undefined;
  /** Returns numbers in [0, 1) for jitter; any other result is replaced by `Math.random()`. Default `Math.random`. */
  readonly random?: (() => number) | undefined;
  /** How long a process counts as alive after its last heartbeat, in milliseconds. Default 10,000. */
  readonly leaseMs?: number | undefined;
  /**
   * Returns the credentials when a turn started in another process continues, or is copied to `projections`. Default: none; such
   * a turn then waits for credentials if a tool requires them, and is copied without.
   */
  readonly resolveAuth?: ((request: AuthRequest) => Auth | undefined | Promise<Auth | undefined>) | undefined;
  /** Decides who may decide which request. Default: every caller of the runtime. */
  readonly mayDecide?: ((attempt: DecisionAttempt) => boolean | Promise<boolean>) | undefined;
  /**
   * When models are asked to stream: `watched`, only for a tree that has readers, or `always`, so that a reader who joins during
   * an answer sees the rest of it. Default `watched`, since a whole answer takes less work.
   */
  readonly streaming?: "watched" | "always" | undefined;
  /** An observer like that of `runtime.inspect()`, called from the first agent on. Default: none. */
  readonly onInspect?: ((agentId: string, event: InspectionEvent) => void) | undefined;
  /**
   * Discards and restores an agent after each of its commits. Meant for tests of recovery, since it is slow. Default
   * false.
   */
  readonly restoreAfterCommit?: boolean | undefined;
  /**
   * Whose turns this process continues after their process has died; it checks every 0.3 to 0.45 leases. `all`: every turn of the
   * stores whose definition this runtime has. `own`: only turns in trees that it works on, for a program that runs one job and
   * must not start another. With queues shared by processes it is always `all`, because such queues distribute the work of all of
   * them. Default `all`; for `run()` and `createAgent()` it is `own`.
   */
  readonly recovers?: Recovers | undefined;
  /** When idle agents are removed from memory. Default: after 5 seconds, with at most 1,000 of them in memory. */
  readonly idle?: IdleOptions | undefined;
}

/** What `createRuntime()` takes. */
export interface RuntimeOptions<Chosen extends Role = Role> extends RuntimeSettings {
  /** Definitions that can be started by name; subagents that they can spawn are registered too. */
  readonly agents: readonly AgentDefinition[];
  /**
   * The role of this process in a deployment. `client` and `worker` need stores and queues that processes share. Default `all`.
   */
  readonly role?: Chosen | undefined;
  /**
   * How much work is done here; a `client` does none. Default: up to 50 woken agents, and one job of each tool's queue at
   * a time.
   */
  readonly work?: WorkOf<Chosen> | undefined;
  /**
   * Deletes trees in the background in which nothing has happened for a time, also those of other processes; never one with an open turn
   * or an open request. A `client` deletes none. Default: nothing is deleted.
   */
  readonly retention?: RetentionOptions | undefined;
}

/** Filter, order and limit for a list of the tenant's agents. */
export type AgentListOptions = Omit<AgentFilter, "tenant">;

/** Filter and limit for a list of accounts above the roots. */
export interface AccountListOptions {
  /** Only the accounts of this owner and of the tenant. Default: all. */
  readonly ownerId?: string | undefined;
  /** Continues after the account with this id; only without `ownerId`. Default: from the first. */
  readonly after?: string | undefined;
  /** Maximum number of accounts, 1 to 1,000. Default 100. */
  readonly limit?: number | undefined;
}

/** Filter and limit for a list of turns. */
export type TurnListOptions = Omit<TurnFilter, "tenant">;

export interface FollowOptions {
  /**
   * Continue after this cursor; with `"now"`, after the last event stored at the time of the call. Default: the journal's
   * beginning.
   */
  readonly after?: string | undefined;
  /** Aborting it ends the stream. Default: none. */
  readonly signal?: AbortSignal | undefined;
}

/** The state of a tree at one moment, and the cursor at which its events continue. */
export interface TreeSnapshot {
  /** `runtime.follow(rootAgentId, { after: cursor })` continues from this cursor without gaps or duplicates. */
  readonly cursor: string;
  /** The root and all subagents. */
  readonly agents: readonly AgentRecord[];
  /** The budget accounts of the tree. */
  readonly accounts: readonly Account[];
  /** Open requests, oldest first. */
  readonly requests: readonly AgentRequest[];
}

export interface RuntimeShutdownOptions {
  /** Time limit for the whole shutdown in whole milliseconds, 0 to 2^31-1, even if the stores do not answer. Default 8,000. */
  readonly timeoutMs?: number | undefined;
}

export interface RuntimeDrainOptions {
  /**
   * Time limit for the whole drain in whole milliseconds, 0 to 2^31-1. Default 25,000: less than most process supervisors wait.
   */
  readonly timeoutMs?: number | undefined;
}

/** The work that `runtime.drain()` could not finish within its time limit. */
export interface DrainReport {
  /** Jobs that had not ended by then, and agents whose model call or tool was cut off. */
  readonly left: number;
  /** Agents that could not be released, or whose last steps could not be stored. */
  readonly leftBehind: readonly LeftBehind[];
}

/** An agent that a runtime could not release properly within the time limit. */
export interface LeftBehind {
  /** The agent's id. */
  readonly agentId: string;
  /** Its open turn, if one is open. */
  readonly turnId: string | null;
  /** The reason, and what happens to the agent next. */
  readonly reason: string;
}

/** All of troupe in one process, as created by `createRuntime`. */
export interface Runtime {
  /** Whether it accepts commands: `false` once `shutdown()` or `drain()` was called. */
  readonly isOpen: boolean;
  /** The stores passed to it, or its own in-memory stores. */
  readonly stores: Stores;
  /** The queues passed to it, or those of this process. */
  readonly queues: Queues;
  /** The role of this process in a deployment. */
  readonly role: Role;
  /** Prefix of every key. */
  readonly tenant: string;
  /** The definitions that can be started by name, including those of subagents. */
  readonly definitions: ReadonlyMap<string, AgentDefinition>;
  /** Live view of all trees of this process: state, step, usage, budgets. */
  readonly overview: Overview;
  /** Returns the agent, and creates it if no agent with that id exists; it must then be started. */
  agent<Output = Json>(
    /** A definition of this runtime, or its name. With the definition, results are typed by its `output`. */
    definition: AgentDefinition<Output> | string,
    options?: AgentStartOptions,
  ): Promise<Agent<Output>>;
  /** Returns an existing agent of any process. Rejects with `NotFoundError` if it does not exist. */
  find(agentId: string): Promise<Agent<Json>>;
  /** Lists the tenant's agents that match the filter; at most 100, or `limit`. */
  list(options?: AgentListOptions): Promise<AgentRecord[]>;
  /**
   * Turns of root agents, including ended ones, ordered by newest status change, then by id. At most 100, or `limit`; continue
   * with `after: formatTurnCursor(last)`.
   */
  turns(options?: TurnListOptions): Promise<TurnRecord[]>;
  /** The budget accounts of a tree; empty if no such tree is stored. */
  accounts(rootAgentId: string): Promise<Account[]>;
  /**
   * The accounts above the roots (`accounts` of `createRuntime()`) that something was charged to: those of one owner with those of the
   * tenant, or all of them, by id. At most 100, or `limit`; continue with `after: last.id`.
   */
  accountsAbove(options?: AccountListOptions): Promise<Account[]>;
  /**
   * Adds to the limits of an account above the roots until it renews. Calls that wait for room there ask again. Rejects with
   * `NotFoundError` if there is no such account.
   */
  addToAccount(accountId: string, amounts: AccountLimits): Promise<Account>;
  /** Requests that wait for a decision, oldest first. */
  requests(options?: RequestListOptions): Promise<AgentRequest[]>;
  /**
   * Decides a request once, whichever process owns its agent. Rejects with `RequestConflictError` if it was already decided or
   * has expired, with `NotFoundError` if it is unknown, and with `InvalidInputError` for an invalid verdict or invalid arguments.
   * `isReplayed`: the same decision with this key was made before.
   */
  decide(requestId: string, decide: Decide): Promise<AgentRequest & { readonly isReplayed?: true }>;
  /**
   * Stores a schedule: at its times the processes of the deployment open one turn each. A schedule with that key and the same options is
   * returned unchanged, so that a program can call this at every start; with other options it is replaced, and keeps its runs. The key has 1
   * to 100 characters of A-Z a-z 0-9 . _ @ -. Rejects with `InvalidInputError` for invalid options and if no time is left, with
   * `NotFoundError` for an unknown definition.
   */
  schedule(key: string, options: ScheduleOptions): Promise<Schedule>;
  /** Removes a schedule. Turns that it has opened continue. Returns false if there is no schedule with that key. */
  unschedule(key: string): Promise<boolean>;
  /** Lists, pauses and resumes schedules. */
  readonly schedules: Schedules;
  /**
   * Calls the observer with every event of every live agent, including ephemeral ones. `streams: false`: this observer does not
   * cause models to stream, and receives live parts of answers only while others read them; telemetry uses it. Default true.
   */
  subscribe(observer: EventObserver, options?: { readonly streams?: boolean | undefined }): { unsubscribe(): void };
  /**
   * Calls the observer with every XState inspection event of every live agent, and the agent's id: first with an actor event and
   * a snapshot for each existing actor, parents first, then with all further events. Events are provisional until the commit. An
   * error of the observer becomes a process warning. Returns a function that removes the observer.
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
   * Resolves when the projections have everything of a tree that is saved at the time of the call; immediately without
   * projections. A failing store is retried until it recovers. Rejects with `TurnInterruptedError` if the runtime is shut down
   * first.
   */
  projected(rootAgentId: string): Promise<void>;
  /**
   * Deletes an agent with all its subagents: journal, messages, artifacts, accounts, requests, timers, webhooks, keys, queued jobs, and
   * copies in stores of your own. A line without content stays, and the id cannot be used again. Owners in other processes can no longer
   * commit. May be repeated: it then finishes a deletion that was begun. Rejects with `InvalidInputError` for a subagent, `NotFoundError`
   * for an unknown agent, and `AgentBusyError` while a turn of the tree is open, unless `abort` is set.
   */
  delete(agentId: string, options?: DeleteOptions): Promise<DeletionReport>;
  /**
   * Deletes all agents of an owner, one after the other, like `delete()`. After a kill, the next call goes on. Resolves even if some cannot
   * be deleted; `failed` lists them with their errors.
   */
  deleteOwner(ownerId: string, options?: DeleteOwnerOptions): Promise<OwnerDeletionReport>;
  /**
   * Activates every unfinished agent of the stores that no process owns, and returns their ids. Also updates the projections of
   * all trees in the background.
   */
  recover(): Promise<string[]>;
  /**
   * Reads from the stores, sends a canary job through the queues, and checks the event loop. Problems are reported in the result
   * and never reject.
   */
  health(options?: HealthOptions): Promise<RuntimeHealth>;
  /** Counters and current values of this process, and of the queues that it has used. */
  metrics(): Promise<RuntimeMetrics>;
  /**
   * Shuts down within the time limit so that other processes can continue the work: starts nothing new, lets each turn come to
   * rest between two steps, and releases its agent. Work still running shortly before the limit is cut off, and repeated where
   * that is allowed. Then it shuts down. Further calls wait for the same end. Rejects with `InvalidInputError` for an invalid
   * time limit.
   */
  drain(options?: RuntimeDrainOptions): Promise<DrainReport>;
  /**
   * Stores all changes, releases leases and stops the actors, without pausing anything; open turns continue at the next start. It
   * keeps its time limit even if the stores do not answer, and reports in a process warning (`TROUPE_LEFT_BEHIND`) what it could
   * not release. Rejects with `InvalidInputError` for an invalid time.
   */
  shutdown(options?: RuntimeShutdownOptions): Promise<void>;
}
