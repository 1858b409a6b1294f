import type { TraceHeaders } from "../../base/index.ts";
import type { Account, Limits, LimitsChange, NewAccount, Waiter } from "../../budget/index.ts";
import type {
  AgentIdentity,
  AgentKey,
  AgentRecord,
  AgentRequest,
  Artifact,
  CallEndedItem,
  Content,
  Decision,
  InboxItem,
  JournalRow,
  Message,
  ModelTool,
  StopReason,
  StoredDefinition,
  Timer,
  TreeWebhooks,
  TurnRecord,
} from "../../state/index.ts";
import type { Batch } from "./batch.ts";
import type { ForeignWrites } from "./foreign-writes.ts";
import type { LiveChannel } from "./live-channel.ts";
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
  StoredLook,
} from "./outcomes.ts";
import type { AgentFilter, MessageQuery, RequestFilter, TurnFilter, UnattendedQuery } from "./queries.ts";

/**
 * The source of truth. One object per deployment; every adapter passes the same contract suite.
 *
 * Invariants
 * 1. Only the lease holder appends: a commit under an old epoch or a wrong seq is `stale` and changes nothing.
 * 2. A batch is applied wholly or not at all, and at most once by its id.
 * 3. Commands change only their own fields, post to the inbox and never move `seq`.
 * 4. Epochs of an agent only grow.
 * 5. A transient failure throws `StoreUnavailableError`; a record that does not fit its schema `CorruptRecordError`.
 */
export interface Stores {
  readonly kind: string;

  /**
   * Applies each batch on its own, in one transaction where possible; outcomes come in the order given. A batch that
   * breaks a rule or meets a corrupt record is undone alone: the other batches are applied, and the call rejects with
   * its error. Sent again one by one, each batch gets its own answer. `steady`: the store's steady time, which
   * measures working time (`registerProcess`); default `now`.
   */
  commit(batches: readonly Batch[], now: number, steady?: number): Promise<CommitOutcome[]>;

  /** Returns the stored agent as it is if there is one. */
  createAgent(
    identity: AgentIdentity,
    account: NewAccount | null,
    more?: AgentParts,
  ): Promise<{ readonly created: boolean; readonly record: AgentRecord }>;
  readAgent(key: AgentKey): Promise<AgentRecord | undefined>;
  listAgents(filter: AgentFilter): Promise<AgentRecord[]>;

  openTurn(key: AgentKey, command: TurnCommand, now: number): Promise<OpenTurnOutcome>;
  /**
   * Looks whether a turn has ended, and at what its result is made of; undefined if its agent has no record. `after`: the
   * seq of an entry before all of the turn's, if it is known.
   */
  lookAtTurn(key: AgentKey, turnId: string, after?: number): Promise<StoredLook | undefined>;
  /** Pausing a paused agent changes nothing, except that with the option `now` the pause is posted again. */
  pause(key: AgentKey, by: string, now: number, options?: PauseMark): Promise<MarkOutcome>;
  resume(key: AgentKey, by: string, now: number): Promise<MarkOutcome>;
  /** Reaches every living descendant too, whether or not it has an owner. */
  abort(key: AgentKey, command: AbortCommand, now: number): Promise<MarkOutcome>;
  /**
   * Changes limits of the agent's life from now on, and posts the change to the agent, whose owner journals it. Reservations that
   * are held stay. Agents that wait for room, and all below whose calls the limits bind, are told. `steady`: default `now`.
   */
  setBudget(key: AgentKey, command: BudgetCommand, now: number, steady?: number): Promise<SetBudgetOutcome>;
  /**
   * Decides an open request and posts the decision to its agent. Only the first decision counts. From `expiresAt` on,
   * any decision makes the request `expired`, with `by` as `null`, whether or not its timer has fired. With a key it can
   * be sent again; turns and decisions of one tree share their keys.
   */
  decide(
    key: AgentKey,
    requestId: string,
    decision: Decision,
    now: number,
    options?: DecideOptions,
  ): Promise<DecideOutcome>;

  /**
   * Registers a process and returns the offset that turns its clock's `elapsed()` into the store's steady time: a
   * monotonic time that all processes share, which began when the first of them was registered and which setting a
   * clock does not change. It measures leases and working time. Default of `elapsed`: `now`.
   */
  registerProcess(process: ProcessIdentity, now: number, elapsed?: number): Promise<number>;
  /** False for a process that is not registered, or was forgotten after a long silence. */
  heartbeat(processId: string, steady: number): Promise<boolean>;
  /** All processes that are registered, living or not. They are forgotten a day after their last heartbeat. */
  processes(): Promise<RegisteredProcess[]>;
  /**
   * `leaseMs`: for how long a process without a heartbeat is considered alive. `isKnown`: whether the caller has the
   * definition of that name; if not, the outcome is `unknown`, and nothing is changed. Default: it has all.
   */
  acquire(
    key: AgentKey,
    processId: string,
    leaseMs: number,
    steady: number,
    isKnown?: (definitionName: string) => boolean,
  ): Promise<AcquireOutcome>;
  /**
   * False if the epoch is old, and while the inbox is not empty, so that no item is left unseen. For `parked`, queued
   * turns behind the open one do not count. An owner that is leaving gives the lease back in any case; the next owner
   * finds the items.
   */
  release(key: AgentKey, epoch: number, options?: ReleaseOptions): Promise<boolean>;
  /** Tells the owner of an agent at rest, by an item, that another process wants its lease for a moment. */
  wantLease(key: AgentKey, now: number): Promise<void>;
  /**
   * Nothing is going to be done with these agents for a while, so what the stores keep of them in memory may become smaller, at
   * the cost of the next read. Changes nothing that is stored.
   */
  rest?(keys: readonly AgentKey[]): void;
  /**
   * Agents that need an owner: agents of dead processes with an open turn or an inbox item, agents without owner that
   * have an inbox item, and agents that were left with an open turn. Not listed are agents that are shut down or
   * parked, and agents whose items no process can take in now: queued turns behind the open one, or items that a pause
   * holds. The cost grows with their number, not with the number of all agents. Changes nothing of the agents.
   */
  unattended(tenant: string, query: UnattendedQuery, steady: number): Promise<AgentKey[]>;
  /** The process that holds the agent's lease, if any. */
  holder(key: AgentKey): Promise<{ readonly process: ProcessIdentity; readonly epoch: number } | undefined>;

  /**
   * Claims a queued call for a worker that is about to run it, before anything of it runs. A call that must not be
   * repeated is given out once; a repeatable one as often as it is asked for. If another living process has it, its timer
   * is set to the end of that one's lease, so that its job is added again when that one is dead.
   */
  claimCall(key: AgentKey, claim: CallClaim, steady: number): Promise<CallClaimOutcome>;
  /**
   * Reports the end of a queued call to its agent; only the first report counts. Nothing is posted if the agent goes on
   * without the call. The stores set the item's key.
   */
  postCallEnd(key: AgentKey, item: CallEndedItem): Promise<{ readonly posted: readonly string[] }>;

  inbox(key: AgentKey): Promise<InboxItem[]>;
  /** Those of the agents whose inbox is not empty, in one read for all of them; agents that are not stored have none. */
  posted(keys: readonly AgentKey[]): Promise<AgentKey[]>;
  /** The rows that hold entries from `fromSeq` on. */
  readJournal(key: AgentKey, fromSeq: number): Promise<JournalRow[]>;
  /** The rows of the whole tree after a cursor, in order; at most `limit`. */
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
   * Turns of root agents. They stay after they have ended; each is stored by the transaction that opens it, and changed
   * by those that begin and end it.
   */
  turns(filter: TurnFilter): Promise<TurnRecord[]>;
  accounts(tenant: string, rootAgentId: string): Promise<Account[]>;
  /** Calls of the tree that wait for a reservation, in the order of their first asks. */
  waiters(tenant: string, rootAgentId: string): Promise<Waiter[]>;
  account(tenant: string, accountId: string): Promise<Account | undefined>;
  /**
   * The definition of that hash, as agents of the tree had it. Kept with the tree, and never changed: by the transaction
   * that creates an agent, or in which a turn goes on under another definition.
   */
  definition(tenant: string, rootAgentId: string, hash: string): Promise<StoredDefinition | undefined>;
  /** The agents that work in a tree and what it waits for; `undefined` if none of its requests is open. */
  treeActivity(tenant: string, rootAgentId: string): Promise<TreeActivity | undefined>;
  /** A tree and its last cursor at one moment; undefined if its root has no record. */
  treeHead(tenant: string, rootAgentId: string): Promise<TreeHead | undefined>;
  /** Due timers, oldest first: timers of working time are due by `steady` (default `now`), all others by `now`. */
  dueTimers(now: number, limit: number, steady?: number): Promise<Timer[]>;
  /**
   * Handles a due timer of an account or of a queued call, also if another process owns the agent. Room that was kept for a
   * waiter that does not ask goes to the next one; the warning of a limit on time is posted to the agent. The timer of a
   * queued call returns the call, whose job may be lost, and is set again (`JOB_LOOK_MS`). `steady`: default `now`.
   */
  fireTimer(timer: AccountTimer | JobTimer, now: number, steady?: number): Promise<FiredTimer>;
  /** The earliest time of all timers, in whichever of the two times it is measured. */
  nextTimerAt(): Promise<number | undefined>;
  /** One timer of an agent, as it is set now. */
  timer(key: AgentKey, timerId: string): Promise<Timer | undefined>;

  /** Everything of a tree at one moment; undefined if its root has no record. */
  exportTree(tenant: string, rootAgentId: string): Promise<StoredTree | undefined>;
  /**
   * Replaces what is stored of a tree, in one transaction. Agents that had an owner get the owner `processId` (register
   * it first), the others none. Epochs do not go back, and another process that owns an agent here is fenced off. Rows
   * keep their order under growing cursors; if the tree only adds to the stored rows, those keep their cursors. Throws
   * `InvalidInputError` for a tree whose parts do not belong together.
   */
  importTree(tree: StoredTree, processId: string, options?: ImportOptions): Promise<ImportOutcome>;

  /** The cursor up to which a projection has consumed a tree's rows; 0 at first. */
  projectionCursor(tenant: string, name: string, rootAgentId: string): Promise<number>;
  /** Stores how far a projection has come. A lower cursor than the stored one changes nothing. */
  moveProjection(tenant: string, name: string, rootAgentId: string, cursor: number): Promise<void>;

  /** The webhooks of the tree's turns; `undefined` if there are none. Exports do not contain them. */
  webhooks(tenant: string, rootAgentId: string): Promise<TreeWebhooks | undefined>;
  /**
   * Replaces those of a tree; an empty list removes them. Nothing is changed and the result is false unless `before` is
   * the revision that is stored (null: there are none), and if the tree has no root.
   */
  putWebhooks(webhooks: TreeWebhooks, before: string | null): Promise<boolean>;
  /** Those whose `dueAt` is up to `now`, the earliest first. */
  dueWebhooks(tenant: string, now: number, limit: number): Promise<TreeWebhooks[]>;

  /** Carries what is not stored to the followers of a tree. */
  readonly live: LiveChannel;
  /**
   * Called when another process wrote to the store, with what is known of the write. Returns a function that ends the
   * subscription.
   */
  onForeignWrite(listener: (writes: ForeignWrites) => void): () => void;
  /**
   * Called when the stores have lost writes to a tree that they had acknowledged. Only what this process has seen of
   * the tree is compared. Returns a function that ends the subscription.
   */
  onRolledBack(listener: (found: RolledBackTree) => void): () => void;
  close(): Promise<void>;
}

/** What a new agent gets besides its record. */
export interface AgentParts {
  /** Its conversation so far. Default: empty. */
  readonly messages?: readonly Message[] | undefined;
  /** Kept with the tree. */
  readonly definition?: StoredDefinition | undefined;
}

export interface TurnCommand {
  readonly input: Content | null;
  readonly actorId: string | null;
  readonly limits: Limits | null;
  /**
   * The behaviour while another turn is open. `refuse`: nothing. `queue`: queue the turn behind it and behind those that
   * are queued already. `supersede`: the same, and abort the open turn with all work below it.
   */
  readonly ifBusy: "refuse" | "queue" | "supersede";
  /** The span that asks for the turn. */
  readonly trace?: TraceHeaders | undefined;
  /** Messages of the conversation that are the input of a turn without content. Default none. */
  readonly inputMessageIds?: readonly string[] | undefined;
  /** Tools of the turn that its caller runs. Default none. */
  readonly clientTools?: readonly ModelTool[] | undefined;
  /** Only opens the turn if it is the agent's first one: the command can be repeated safely. */
  readonly isFirst?: boolean | undefined;
  /** Only opens the turn if the key means no turn and no decision of the agent yet. Root agents only. */
  readonly key?: TurnKey | undefined;
  /** Opens nothing: only gives the turn of the key. */
  readonly onlyKnown?: boolean | undefined;
}

/** Marks a turn as the one of a key that its caller chose, so that the command can be sent again. */
export interface TurnKey {
  readonly text: string;
  /** Of everything that was asked for: a command with the same key and another hash is a conflict. */
  readonly hash: string;
}

/** A turn with the part that only the stores use. */
export interface StoredTurn extends TurnRecord {
  /** The hash of its key; null without a key. */
  readonly hash: string | null;
}

export interface AbortCommand {
  readonly turnId: string | null;
  /**
   * Aborts only what spends under this account and does not belong to the agent's open turn: background children and
   * what they have started. Without it, `turnId` decides.
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
  /** Also drop the model calls in flight, which are repeated after the pause. Default: they finish first. */
  readonly now?: boolean | undefined;
}

/** The stores' form of the options. */
export interface PauseMark extends PauseOptions {
  /** The stores' steady time; default: `now`. */
  readonly steady?: number | undefined;
}

export interface DecideOptions {
  /** Hash of the arguments that the decider was shown; a request about other arguments is not decided. */
  readonly argumentsHash?: string | undefined;
  /** Marks the decision as the one of a key that its caller chose, so that the command can be sent again. */
  readonly key?: string | undefined;
}

export interface ReleaseOptions {
  /**
   * Why the lease is given back. `rest`, the default: there is nothing to do. `parked`: the open turn waits for others;
   * its working time keeps counting, and no process takes the agent up until it gets an item. `leaving`: the owner leaves
   * even with work left to do; an agent with an open turn becomes unattended.
   */
  readonly as?: "rest" | "parked" | "leaving" | undefined;
  /** Until when it was worked on; default: its last commit. */
  readonly steady?: number | undefined;
}

/**
 * A tree that was rolled back: the stores have lost its last changes, though they had acknowledged them, because a
 * server that does not sync each write was killed, a replica that lagged behind took over, or a backup was restored.
 */
export interface RolledBackTree {
  readonly tenant: string;
  readonly rootAgentId: string;
  /** When the newest change was made that this process knows of, in milliseconds since the epoch. */
  readonly hadAt: number;
  /** When the newest change was made that is left; null if nothing is left of the tree. */
  readonly foundAt: number | null;
}

/** A tree as it is at one moment, without what was said and done in it. */
export interface TreeHead {
  /** Cursor of the last row that is included; 0 if there is none. */
  readonly cursor: number;
  readonly agents: readonly AgentRecord[];
  readonly accounts: readonly Account[];
  /** In the order in which they were opened. */
  readonly openRequests: readonly AgentRequest[];
}

/** The agents that work in a tree and what it waits for, at one moment. */
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

/** What must be so of the stored tree for it to be replaced; otherwise nothing is changed. */
export interface ImportOptions {
  /**
   * The inbox items that the imported tree has taken into account. If an inbox here holds another one the outcome is
   * `newItems`, because the sender of that item was told that it is kept. Default: not checked.
   */
  readonly known?: KnownItems | undefined;
  /**
   * `absent`: nothing is stored of the tree. `own`: the importing process holds the lease of its root. The outcome is
   * `notOwned` otherwise. Default: not checked.
   */
  readonly replaces?: "absent" | "own" | undefined;
  /** Whether its rows keep their cursors; only for stores that hold no other tree. Default: false. */
  readonly keepsCursors?: boolean | undefined;
}

export type ImportOutcome = "imported" | "newItems" | "notOwned";

/** Everything that a store knows of one tree, as one plain value that can be written as JSON. */
export interface StoredTree {
  readonly tenant: string;
  readonly rootAgentId: string;
  /** In the order in which they were created. */
  readonly agents: readonly StoredAgent[];
  readonly accounts: readonly Account[];
  /** The waiters of each account at the top, by account id. */
  readonly lines: Readonly<Record<string, readonly Waiter[]>>;
  /** Rows of all agents in the order of their cursors. */
  readonly rows: readonly StoredRow[];
  /** Turns of the root, by number. */
  readonly turns: readonly StoredTurn[];
  /** By hash. */
  readonly definitions: readonly StoredDefinition[];
  /** How far each projection has come. */
  readonly projections: readonly { readonly name: string; readonly cursor: number }[];
}
