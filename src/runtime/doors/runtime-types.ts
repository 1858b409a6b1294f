import type { InspectionEvent } from "xstate";
import type { AgentDefinition } from "../../agents/index.ts";
import type { Clock } from "../../base/index.ts";
import type { Account } from "../../budget/index.ts";
import type { PriceTable } from "../../model/index.ts";
import type { Queues } from "../../queues/index.ts";
import type { AgentRecord, AgentRequest, TroupeEvent } from "../../state/index.ts";
import type { AgentFilter, Stores } from "../../stores/index.ts";
import type { Auth } from "../../tools/index.ts";
import type { Overview } from "../projections/overview.ts";
import type { Projections } from "./projection-stores.ts";
import type { Agent, AgentStartOptions, Decide, DecisionAttempt, RequestListOptions } from "./agent-types.ts";
import type { Role, RoleOptions } from "./roles.ts";
import type { HealthOptions, RuntimeHealth, RuntimeMetrics } from "./runtime-health.ts";
import type { EventObserver } from "./turn-types.ts";

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

/** Which agents of the runtime's tenant are listed, in which order, and how many. */
export type AgentListOptions = Omit<AgentFilter, "tenant">;

export interface FollowOptions {
  /** Continue after this cursor; absent: from the beginning of the journal. */
  readonly after?: string | undefined;
  readonly signal?: AbortSignal | undefined;
}

export interface RuntimeShutdownOptions {
  /** Whole milliseconds from 0 to 2^31-1 within which all is over, whether or not the stores answer. Default 8,000. */
  readonly timeoutMs?: number | undefined;
}

export interface RuntimeDrainOptions {
  /** Whole milliseconds from 0 to 2^31-1 within which all is over. Default 25,000: less than most supervisors of processes wait. */
  readonly timeoutMs?: number | undefined;
}

export interface DrainReport {
  /** Jobs that had not ended when the time was over, and agents of which a model call or a tool was cut off. */
  readonly left: number;
  /** Agents that could not be given back, or whose last steps could not be stored. */
  readonly leftBehind: readonly LeftBehind[];
}

/** An agent that a runtime could not leave as it should when its time was over. */
export interface LeftBehind {
  readonly agentId: string;
  /** Its open turn, if there is one. */
  readonly turnId: string | null;
  /** Why, and what becomes of it, in words. */
  readonly reason: string;
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
