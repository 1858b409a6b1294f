import type { TraceHeaders } from "../../base/index.ts";
import type { Account, Limits, LimitsChange, Moment, NewAccount, Waiter } from "../../budget/index.ts";
import type {
  AgentIdentity,
  AgentKey,
  AgentRecord,
  AgentRequest,
  Artifact,
  CallEndedItem,
  Content,
  Decision,
  Deletion,
  InboxItem,
  JournalRow,
  Message,
  ModelTool,
  CallSettings,
  Schedule,
  StopReason,
  StoredDefinition,
  Timer,
  TreeWebhooks,
  TurnRecord,
} from "../../state/index.ts";
import type { Batch } from "./batch.ts";
import type { ForeignWrites } from "./foreign-writes.ts";
import type { LiveChannel } from "./live-channel.ts";
import type { HoldEnd, OuterAnswers } from "./outer-answers.ts";
import type {
  AccountTimer,
  AcquireOutcome,
  CallClaim,
  CallClaimOutcome,
  CommitOutcome,
  Committed,
  DecideOutcome,
  FiredTimer,
  JobTimer,
  MarkOutcome,
  OpenTurnOutcome,
  ProcessIdentity,
  RegisteredProcess,
  SetBudgetOutcome,
  SteerMeaning,
  SteerOutcome,
  StoredLook,
} from "./outcomes.ts";
import type {
  AgentFilter,
  DeletionQuery,
  MessageQuery,
  RequestFilter,
  ScheduleCursor,
  ScheduleFilter,
  TurnFilter,
  UnattendedQuery,
} from "./queries.ts";

/**
 * The source of truth. One object per deployment; every adapter passes the same contract suite.
 *
 * Invariants
 * 1. Only the lease holder appends: a commit under an old epoch or a wrong seq is `stale` and changes nothing.
 * 2. A batch is applied completely or not at all, and at most once per id.
 * 3. Commands change only their own fields, post to the inbox and never change `seq`.
 * 4. Epochs of an agent only grow.
 * 5. A transient failure throws `StoreUnavailableError`; a record that does not fit its schema `CorruptRecordError`.
 */
export interface Stores {
  readonly kind: string;

  /**
   * Applies each batch separately, in one transaction where possible; outcomes are in the order of the batches. If a batch breaks a rule
   * or meets a corrupt record, only that batch is undone: the other batches are applied, and the call rejects with its error. If the
   * batches are then sent again one by one, each gets its own outcome. `steady`: the store's steady time, which measures working time
   * (`registerProcess`); default `now`.
   */
  commit(batches: readonly Batch[], now: number, steady?: number): Promise<CommitOutcome[]>;

  /** Returns the stored agent unchanged if it exists. */
  createAgent(
    identity: AgentIdentity,
    account: NewAccount | null,
    more?: AgentParts,
  ): Promise<{ readonly created: boolean; readonly record: AgentRecord }>;
  readAgent(key: AgentKey): Promise<AgentRecord | undefined>;
  listAgents(filter: AgentFilter): Promise<AgentRecord[]>;

  openTurn(key: AgentKey, command: TurnCommand, now: number): Promise<OpenTurnOutcome>;
  /** Posts an input to the open turn. Without one, or for another turn, it opens a turn as `openTurn` with `ifBusy: "queue"` does. */
  steer(key: AgentKey, command: SteerCommand, now: number): Promise<SteerOutcome>;
  /** The state of an input by its key, or by its `steerId` if it has none; `undefined` if the agent has no such input. */
  readSteer(key: AgentKey, keyOrId: string): Promise<SteerMeaning | undefined>;
  /**
   * Reads whether a turn has ended, and the data of its result; `undefined` if its agent has no record. `after`: the seq of an entry
   * before the turn's entries, if known.
   */
  lookAtTurn(key: AgentKey, turnId: string, after?: number): Promise<StoredLook | undefined>;
  /** Pausing a paused agent changes nothing, except that with the option `now` the pause is posted again. */
  pause(key: AgentKey, by: string, now: number, options?: PauseMark): Promise<MarkOutcome>;
  resume(key: AgentKey, by: string, now: number): Promise<MarkOutcome>;
  /** Also aborts every living descendant, with or without an owner. */
  abort(key: AgentKey, command: AbortCommand, now: number): Promise<MarkOutcome>;
  /**
   * Changes the limits of the agent's lifetime account from now on, and posts the change to the agent, whose owner journals it. Held
   * reservations are kept. Waiting agents, and all agents below whose calls the limits affect, are notified. `steady`: default `now`.
   */
  setBudget(key: AgentKey, command: BudgetCommand, now: number, steady?: number): Promise<SetBudgetOutcome>;
  /**
   * Decides an open request and posts the decision to its agent. Only the first decision counts. From `expiresAt` on, any decision makes
   * the request `expired`, with `by` as `null`, whether or not its timer has fired. With a key it can be sent again; turns and decisions
   * of one tree share their keys.
   */
  decide(
    key: AgentKey,
    requestId: string,
    decision: Decision,
    now: number,
    options?: DecideOptions,
  ): Promise<DecideOutcome>;

  /**
   * Registers a process and returns the offset that converts its clock's `elapsed()` to the store's steady time: a monotonic time that
   * all processes share. It began when the first of them was registered, and setting a clock does not change it. It measures leases and
   * working time. Default of `elapsed`: `now`.
   */
  registerProcess(process: ProcessIdentity, now: number, elapsed?: number): Promise<number>;
  /** `false` for a process that is not registered, or was forgotten after a long silence. */
  heartbeat(processId: string, steady: number): Promise<boolean>;
  /** All registered processes, living or not. They are forgotten a day after their last heartbeat. */
  processes(): Promise<RegisteredProcess[]>;
  /**
   * `leaseMs`: how long a process without a heartbeat is considered alive. `isKnown`: whether the caller has the definition of that name;
   * if not, the outcome is `unknown`, and nothing is changed. Default: it has all.
   */
  acquire(
    key: AgentKey,
    processId: string,
    leaseMs: number,
    steady: number,
    isKnown?: (definitionName: string) => boolean,
  ): Promise<AcquireOutcome>;
  /**
   * `false` if the epoch is old, and while the inbox is not empty, so that no item stays unseen. For `parked`, queued turns behind the
   * open one do not count. An owner that is leaving always releases the lease; the next owner finds the items.
   */
  release(key: AgentKey, epoch: number, options?: ReleaseOptions): Promise<boolean>;
  /** Posts an item to the owner of an agent at rest: another process needs the lease for a moment. */
  wantLease(key: AgentKey, now: number): Promise<void>;
  /**
   * These agents will not be used for a while, so the stores may reduce their cached data, at the cost of the next read. Changes no
   * stored data.
   */
  rest?(keys: readonly AgentKey[]): void;
  /**
   * Agents that need an owner: agents of dead processes with an open turn or an inbox item, agents without an owner that have an inbox
   * item, and agents that were left with an open turn. Not listed are agents that are shut down or parked, and agents whose items no
   * process can process now: queued turns behind the open one, or items that a pause holds. The cost grows with their number, not with
   * the number of all agents. Changes nothing.
   */
  unattended(tenant: string, query: UnattendedQuery, steady: number): Promise<AgentKey[]>;
  /** The process that holds the agent's lease, if any. */
  holder(key: AgentKey): Promise<{ readonly process: ProcessIdentity; readonly epoch: number } | undefined>;

  /**
   * Claims a queued call for a worker, before any of its code runs. A call that must not be repeated is claimed once; a repeatable one
   * any number of times. If another living process has it, its timer is set to the end of that process's lease, so that its job is added
   * again when that process is dead.
   */
  claimCall(key: AgentKey, claim: CallClaim, steady: number): Promise<CallClaimOutcome>;
  /**
   * Reports the end of a queued call to its agent; only the first report counts. Nothing is posted if the agent has continued without the
   * call. The stores set the item's key.
   */
  postCallEnd(key: AgentKey, item: CallEndedItem): Promise<{ readonly posted: readonly string[] }>;

  inbox(key: AgentKey): Promise<InboxItem[]>;
  /** Those of the given agents whose inbox is not empty, in one read; agents that are not stored have none. */
  posted(keys: readonly AgentKey[]): Promise<AgentKey[]>;
  /** The rows that contain entries from `fromSeq` on. */
  readJournal(key: AgentKey, fromSeq: number): Promise<JournalRow[]>;
  /** The rows of all agents of the tree after a cursor, in order; at most `limit`. */
  readTree(tenant: string, rootAgentId: string, afterCursor: number, limit: number): Promise<JournalRow[]>;

  messages(key: AgentKey, query?: MessageQuery): Promise<Message[]>;
  messagesById(key: AgentKey, ids: readonly string[]): Promise<Message[]>;
  /** Oldest first, without content. */
  artifacts(key: AgentKey): Promise<Omit<Artifact, "content">[]>;
  artifact(key: AgentKey, artifactId: string): Promise<Artifact | undefined>;
  /** The newest artifact of that name, or the one of the given version. */
  artifactByName(key: AgentKey, name: string, version?: number): Promise<Artifact | undefined>;
  /** Requests stay after they were decided or closed, and after their turn has ended. */
  requests(filter: RequestFilter): Promise<AgentRequest[]>;
  request(key: AgentKey, requestId: string): Promise<AgentRequest | undefined>;
  /**
   * Turns of root agents. They are kept after their end; each is stored by the transaction that opens it, and changed by those that start
   * and end it.
   */
  turns(filter: TurnFilter): Promise<TurnRecord[]>;
  accounts(tenant: string, rootAgentId: string): Promise<Account[]>;
  /** Calls of the tree that wait for a reservation, in the order of their first ask. */
  waiters(tenant: string, rootAgentId: string): Promise<Waiter[]>;
  account(tenant: string, accountId: string): Promise<Account | undefined>;
  /**
   * The definition with that hash, as used by agents of the tree. It is stored with the tree, never changed, and written by the
   * transaction that creates an agent or in which a turn continues under another definition.
   */
  definition(tenant: string, rootAgentId: string, hash: string): Promise<StoredDefinition | undefined>;
  /** The agents that work in a tree and its open requests; `undefined` if no request is open. */
  treeActivity(tenant: string, rootAgentId: string): Promise<TreeActivity | undefined>;
  /** A tree and its last cursor at one moment; `undefined` if its root has no record. */
  treeHead(tenant: string, rootAgentId: string): Promise<TreeHead | undefined>;
  /** Due timers, oldest first: timers of working time are due by `steady` (default `now`), all others by `now`. */
  dueTimers(now: number, limit: number, steady?: number): Promise<Timer[]>;
  /**
   * Handles a due timer of an account or of a queued call, even if another process owns the agent. An amount that was kept free for a
   * waiter that does not ask is offered to the next one; the warning of a time limit is posted to the agent. The timer of a queued call
   * returns the call, whose job may be lost, and is set again (`JOB_LOOK_MS`). `steady`: default `now`.
   */
  fireTimer(timer: AccountTimer | JobTimer, now: number, steady?: number): Promise<FiredTimer>;
  /** The earliest due time of all timers, whether in wall-clock or steady time. */
  nextTimerAt(): Promise<number | undefined>;
  /** One timer of an agent as currently set. */
  timer(key: AgentKey, timerId: string): Promise<Timer | undefined>;

  /** All data of a tree at one moment; `undefined` if its root has no record. */
  exportTree(tenant: string, rootAgentId: string): Promise<StoredTree | undefined>;
  /**
   * Replaces the stored data of a tree, in one transaction. Agents that had an owner get the owner `processId` (register it first), the
   * others none. Epochs do not decrease, and another process that owns an agent in these stores is fenced off. Rows keep their order
   * under growing cursors; if the tree only adds rows, the stored ones keep their cursors. Throws `InvalidInputError` for an inconsistent
   * tree.
   */
  importTree(tree: StoredTree, processId: string, options?: ImportOptions): Promise<ImportOutcome>;

  /** The cursor up to which a projection has consumed a tree's rows; 0 at first. */
  projectionCursor(tenant: string, name: string, rootAgentId: string): Promise<number>;
  /**
   * Stores the cursor of a projection. A lower cursor than the stored one changes nothing. False, and nothing is stored, if the tree is not
   * stored: it was deleted.
   */
  moveProjection(tenant: string, name: string, rootAgentId: string, cursor: number): Promise<boolean>;

  /** The webhooks of the tree's turns; `undefined` if there are none. Exports do not contain them. */
  webhooks(tenant: string, rootAgentId: string): Promise<TreeWebhooks | undefined>;
  /**
   * Replaces the webhooks of a tree; an empty list removes them. Returns false and changes nothing unless `before` is the stored revision
   * (null: there are none), and if the tree has no root.
   */
  putWebhooks(webhooks: TreeWebhooks, before: string | null): Promise<boolean>;
  /** Webhooks whose `dueAt` is up to `now`, earliest first. */
  dueWebhooks(tenant: string, now: number, limit: number): Promise<TreeWebhooks[]>;

  schedule(tenant: string, key: string): Promise<Schedule | undefined>;
  /** Ordered by key; at most `limit` (default 100). */
  schedules(filter: ScheduleFilter): Promise<Schedule[]>;
  /**
   * Stores a schedule. Returns false and changes nothing unless `before` is the revision of the stored one with its key (null: there is
   * none).
   */
  putSchedule(schedule: Schedule, before: string | null): Promise<boolean>;
  /** Returns false and removes nothing if there is no such schedule, or if `before` is given and is not its revision. */
  removeSchedule(tenant: string, key: string, before?: string): Promise<boolean>;
  /** Removes every schedule that matches the filter and returns their keys; `limit` does not apply. */
  removeSchedules(filter: ScheduleFilter): Promise<string[]>;
  /** Schedules whose `scheduleDueAt` is up to `now`, earliest first, then by key. */
  dueSchedules(tenant: string, now: number, limit: number, after?: ScheduleCursor): Promise<Schedule[]>;
  /** The earliest `scheduleDueAt` after a time. */
  nextScheduleAt(tenant: string, after: number): Promise<number | undefined>;
  /**
   * Deletes a tree with everything that belongs to it. The deletion is stored first, as pending, so that it can be finished after a crash;
   * `finishDeletion` finishes it. A process that owns an agent of the tree can no longer commit: its batches are `stale`. No agent with
   * the id of a deleted tree can be created or imported (`AgentDeletedError`).
   */
  deleteTree(deletion: PendingDeletion, conditions?: DeleteConditions): Promise<DeleteOutcome>;
  /**
   * Removes what is left of a deleted tree outside of its rows, and stores the deletion without `pending`. May be repeated; on a tree that
   * is still stored it only removes a deletion that was begun.
   */
  finishDeletion(deletion: PendingDeletion): Promise<void>;
  /** The line that stays of a deleted tree; `undefined` if no such tree was deleted. */
  deletion(tenant: string, rootAgentId: string): Promise<Deletion | undefined>;
  deletions(query: DeletionQuery): Promise<Deletion[]>;
  /** Drops what this process has in its caches of a tree that was deleted. Changes no stored data. */
  dropTree?(key: AgentKey): void;

  /** The accounts above the roots of trees. */
  readonly outer: OuterAccounts;
  /** Transports data that is not stored to the followers of a tree. */
  readonly live: LiveChannel;
  /**
   * The listener is called with the known writes when another process wrote to the store. Returns a function that ends the subscription.
   */
  onForeignWrite(listener: (writes: ForeignWrites) => void): () => void;
  /**
   * The listener is called when the stores have lost acknowledged writes to a tree. Only data that this process has seen of the tree is
   * compared. Returns a function that ends the subscription.
   */
  onRolledBack(listener: (found: RolledBackTree) => void): () => void;
  close(): Promise<void>;
}

/** Whether processes on any machine may use these stores, so that others may serve and write the same agents. */
export function areShared({ kind }: Pick<Stores, "kind">): boolean {
  return kind === "redis" || kind === "postgres";
}

/** A deletion that is not finished. */
export type PendingDeletion = Deletion & { readonly pending: NonNullable<Deletion["pending"]> };

/** Conditions for deleting a tree; if they are not met, nothing is changed. */
export interface DeleteConditions {
  /** Only while no turn of the tree is open. Default: open turns are deleted too. */
  readonly isAtRest?: boolean | undefined;
  /** Only if the journals of the tree have this many entries. Default: not checked. */
  readonly entries?: number | undefined;
  /** Only if nothing was stored in the journals since this time, and no request is open. Default: not checked. */
  readonly unusedSince?: number | undefined;
}

/**
 * `busy`: a turn of this agent is open. `changed`: the journals have other entries. `used`: used since, or with an open request. `absent`:
 * no such tree is stored.
 */
export type DeleteOutcome =
  | { readonly type: "deleted" | "changed" | "used" | "absent" }
  | { readonly type: "busy"; readonly agentId: string; readonly openTurnId: string };

/** The accounts of owners and tenants, above the roots of their trees. */
export interface OuterAccounts {
  /** Settles and reserves for one batch, in its own transaction. `commit` does this itself, unless it gets the answers. */
  charge(batch: Batch, moment: Moment): Promise<OuterAnswers>;
  /** Ends holds after the commit of their batch. */
  end(tenant: string, ends: readonly HoldEnd[], moment: Moment): Promise<void>;
  /** The accounts of one owner and of the tenant, as stored; those of a window that has ended are shown as they were. */
  of(tenant: string, ownerId: string | null): Promise<Account[]>;
  /** All accounts of the tenant, by id. */
  list(
    tenant: string,
    page?: { readonly after?: string | undefined; readonly limit?: number | undefined },
  ): Promise<Account[]>;
  /** Adds to the limits of an account until it renews; `undefined` if there is no such account. */
  raise(tenant: string, accountId: string, more: Limits, moment: Moment): Promise<Account | undefined>;
  /**
   * Returns reservations whose batch was not applied and cannot be any more, and wakes calls whose turn it is. Each process with accounts
   * calls it regularly. Returns the agents that it woke; those of trees in memory are posted to by their stores (`wake`).
   */
  tidy(tenant: string, moment: Moment): Promise<readonly string[]>;
  /**
   * Removes the accounts of an owner whose trees are deleted. What is still reserved for deleted trees is settled in full before. Returns
   * false and leaves them if a tree that exists has calls on them.
   */
  forget(tenant: string, ownerId: string, moment: Moment): Promise<boolean>;
  /** Makes agents that wait ask again. */
  wake(tenant: string, agentIds: readonly string[], moment: Moment): Promise<void>;
}

/** The data of a new agent besides its record. */
export interface AgentParts {
  /** Its conversation so far. Default: empty. */
  readonly messages?: readonly Message[] | undefined;
  /** Stored with the tree. */
  readonly definition?: StoredDefinition | undefined;
}

export interface TurnCommand {
  readonly input: Content | null;
  readonly actorId: string | null;
  readonly limits: Limits | null;
  /**
   * The behaviour while another turn is open. `refuse`: nothing is changed. `queue`: the turn is queued behind the open and the queued
   * ones. `supersede`: the same, and the open turn with all work below it is aborted.
   */
  readonly ifBusy: "refuse" | "queue" | "supersede";
  /** The span that requested the turn. */
  readonly trace?: TraceHeaders | undefined;
  /** Messages of the conversation that are the input of a turn without content. Default: none. */
  readonly inputMessageIds?: readonly string[] | undefined;
  /** Tools of the turn that its caller runs. Default: none. */
  readonly clientTools?: readonly ModelTool[] | undefined;
  /** Settings of the turn's model calls. Default: those of the definition. */
  readonly settings?: CallSettings | undefined;
  /** Opens the turn only if it is the agent's first one, so that the command can be repeated safely. */
  readonly isFirst?: boolean | undefined;
  /** Opens the turn only if no turn or decision of the agent has the key yet. Root agents only. */
  readonly key?: TurnKey | undefined;
  /** Opens nothing: only returns the turn with the key. */
  readonly onlyKnown?: boolean | undefined;
}

/** An input for the open turn, with the parameters of the turn that it opens if it is not taken in. */
export interface SteerCommand {
  /** Identifies the command; unique, and with a space, so that it differs from every key. */
  readonly steerId: string;
  /** The turn that is to take it in; default: the open one. */
  readonly turnId?: string | undefined;
  readonly turn: Omit<TurnCommand, "ifBusy" | "input" | "isFirst" | "inputMessageIds"> & { readonly input: Content };
}

/** A key that the caller chose for the turn, so that the command can be sent again. */
export interface TurnKey {
  readonly text: string;
  /** Hash of all parameters: a command with the same key and another hash is a conflict. */
  readonly hash: string;
}

/** A turn with the field that only the stores use. */
export interface StoredTurn extends TurnRecord {
  /** The hash of its key; `null` without a key. */
  readonly hash: string | null;
}

export interface AbortCommand {
  readonly turnId: string | null;
  /**
   * Aborts only turns that spend under this account and do not work for the agent's open turn: background children and their descendants.
   * Without it, `turnId` decides.
   */
  readonly accountId?: string | undefined;
  readonly by: string;
  readonly reason: string;
  readonly stopReason: StopReason;
}

export interface BudgetCommand {
  readonly change: LimitsChange;
  readonly by: string;
}

export interface PauseOptions {
  /** Also drop the model calls in flight; they are repeated after the pause. Default: they finish first. */
  readonly now?: boolean | undefined;
}

/** The stores' form of the options. */
export interface PauseMark extends PauseOptions {
  /** The stores' steady time; default: `now`. */
  readonly steady?: number | undefined;
}

export interface DecideOptions {
  /** Hash of the arguments that were shown to the decider; a request with other arguments is not decided. */
  readonly argumentsHash?: string | undefined;
  /** A key that the caller chose for the decision, so that the command can be sent again. */
  readonly key?: string | undefined;
}

export interface ReleaseOptions {
  /**
   * Why the lease is released. `rest`, the default: no work remains. `parked`: the open turn waits for others; its working time continues
   * to count, and no process acquires the agent until it gets an item. `leaving`: the owner leaves even if work remains; an agent with an
   * open turn becomes unattended.
   */
  readonly as?: "rest" | "parked" | "leaving" | undefined;
  /** The end of the owner's work; default: its last commit. */
  readonly steady?: number | undefined;
}

/**
 * A tree that was rolled back: the stores have lost its last acknowledged changes, because a server that does not sync each write was
 * killed, a lagging replica took over, or a backup was restored.
 */
export interface RolledBackTree {
  readonly tenant: string;
  readonly rootAgentId: string;
  /** Time of the newest change that this process knows of, in milliseconds since the epoch. */
  readonly hadAt: number;
  /** Time of the newest remaining change; `null` if the tree is gone. */
  readonly foundAt: number | null;
  /** Set if the tree was deleted, at this time: nothing was lost. */
  readonly deletedAt?: number | undefined;
}

/** A tree at one moment, without its messages and entries. */
export interface TreeHead {
  /** Cursor of the last row that is included; 0 if there is none. */
  readonly cursor: number;
  readonly agents: readonly AgentRecord[];
  readonly accounts: readonly Account[];
  /** In the order in which they were opened. */
  readonly openRequests: readonly AgentRequest[];
}

/** The agents that work in a tree and its open requests, at one moment. */
export interface TreeActivity extends Omit<TreeHead, "cursor"> {
  /** The inboxes of agents with an open turn, by agent id. */
  readonly inboxes: ReadonlyMap<string, readonly InboxItem[]>;
}

/** A row of the journal with its messages. Rows, and messages within a row, are in the order of the conversation. */
export interface StoredRow extends JournalRow {
  readonly messages: readonly Message[];
}

/** One agent with all its rows. */
export interface StoredAgent {
  readonly record: AgentRecord;
  readonly epoch: number;
  /** Whether a process held its lease. */
  readonly isHeld: boolean;
  /** The last committed entry and its time; 0 if there is none. */
  readonly seq: number;
  readonly at: number;
  /** The last sign of life of its owner, in the store's steady time. */
  readonly sign: number;
  /** Whether its turn was parked. Default `false`. */
  readonly isParked?: boolean;
  /** The last applied batch and its outcome, in case it is sent again. */
  readonly lastBatch: { readonly id: string; readonly outcome: Committed } | null;
  readonly artifacts: readonly Artifact[];
  readonly inbox: readonly InboxItem[];
  readonly timers: readonly Timer[];
  readonly requests: readonly AgentRequest[];
}

/** Keys of inbox items by agent id. */
export type KnownItems = ReadonlyMap<string, ReadonlySet<string>>;

/** Conditions for replacing the stored tree; if they are not met, nothing is changed. */
export interface ImportOptions {
  /**
   * The inbox items that are contained in the imported tree. If a stored inbox contains another item, the outcome is `newItems`, because
   * its sender was told that the item is stored. Default: not checked.
   */
  readonly known?: KnownItems | undefined;
  /**
   * `absent`: the tree must not be stored. `own`: the importing process must hold the lease of its root. Otherwise the outcome is
   * `notOwned`. Default: not checked.
   */
  readonly replaces?: "absent" | "own" | undefined;
  /** Whether the rows keep their cursors; only for stores that contain no other tree. Default: false. */
  readonly keepsCursors?: boolean | undefined;
}

export type ImportOutcome = "imported" | "newItems" | "notOwned";

/** All data of one tree, as one plain value that can be written as JSON. */
export interface StoredTree {
  readonly tenant: string;
  readonly rootAgentId: string;
  /** In the order in which they were created. */
  readonly agents: readonly StoredAgent[];
  readonly accounts: readonly Account[];
  /** The waiters of each top account, by account id. */
  readonly lines: Readonly<Record<string, readonly Waiter[]>>;
  /** Rows of all agents in the order of their cursors. */
  readonly rows: readonly StoredRow[];
  /** Turns of the root, by number. */
  readonly turns: readonly StoredTurn[];
  /** By hash. */
  readonly definitions: readonly StoredDefinition[];
  /** The cursor of each projection. */
  readonly projections: readonly { readonly name: string; readonly cursor: number }[];
}
