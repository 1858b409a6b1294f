import type { TraceHeaders } from "../../base/index.ts";
import type { Account, Limits, NewAccount, Waiter } from "../../budget/index.ts";
import {
  type AgentIdentity,
  type AgentKey,
  type AgentRecord,
  type AgentRequest,
  type Artifact,
  type CallEndedItem,
  type Content,
  type Decision,
  type InboxItem,
  type JournalRow,
  type Message,
  rootOf,
  type StopReason,
  type Timer,
} from "../../state/index.ts";
import type { Batch } from "./batch.ts";
import type { LiveChannel } from "./live-channel.ts";
import type {
  AccountAlarm,
  AcquireOutcome,
  CallClaim,
  CallClaimOutcome,
  CommitOutcome,
  Committed,
  DecideOutcome,
  HeardAlarm,
  JobAlarm,
  MarkOutcome,
  OpenTurnOutcome,
  ProcessIdentity,
} from "./outcomes.ts";
import type { AgentFilter, MessageQuery, RequestFilter, UnattendedQuery } from "./queries.ts";

export interface TurnCommand {
  readonly input: Content | null;
  readonly actorId: string | null;
  readonly limits: Limits | null;
  /**
   * What to do while another turn is open. `refuse`: nothing. `queue`: wait in line behind it and behind those that wait
   * already. `supersede`: the same, and the open turn is aborted, with all that works below it.
   */
  readonly ifBusy: "refuse" | "queue" | "supersede";
  /** The span under which it is asked for. */
  readonly trace?: TraceHeaders | undefined;
  /** Messages of the conversation that are its input, where it brings none of its own. Absent: none. */
  readonly inputMessageIds?: readonly string[] | undefined;
  /** It is the agent's first turn, or none: given twice, it is opened once. */
  readonly isFirst?: boolean | undefined;
}

export interface AbortCommand {
  readonly turnId: string | null;
  /**
   * Only what spends under this account of the agent and does not belong to its open turn: children in the background, and
   * what they have started. Absent: as `turnId` says.
   */
  readonly accountId?: string | undefined;
  readonly by: string;
  readonly reason: string;
  readonly stopReason: StopReason;
}

export interface PauseOptions {
  /** Drop the model calls in flight too; they are repeated after the pause. Default: they end first. */
  readonly now?: boolean | undefined;
}

/** As the stores take it. */
export interface PauseMark extends PauseOptions {
  /** The stores' time; default: what the clock shows. */
  readonly steady?: number | undefined;
}

export interface DecideOptions {
  /** Hash of the arguments that were shown to whoever decides; a request about other ones is not decided (row S15). */
  readonly argumentsHash?: string | undefined;
}

export interface ReleaseOptions {
  /**
   * Why it is given back. `rest`, the default: there is nothing to do. `parked`: its turn is open and waits for what others
   * do: its working time goes on counting, and nobody need take it up until something is posted. `leaving`: its owner
   * goes, whatever is left to do; with an open turn it is `unattended`.
   */
  readonly as?: "rest" | "parked" | "leaving" | undefined;
  /** Until when it was worked on; default: its last commit. */
  readonly steady?: number | undefined;
}

/**
 * Where the truth lives. One object per deployment; every adapter passes the same contract suite.
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
   * Applies each batch by itself, in one transaction where that is possible; outcomes in the order given. A batch that
   * breaks a rule or meets a corrupt record is undone alone: the others stand, and the call rejects with its error. Sent
   * again one by one, each answers for itself. `steady`: the store's time, by which working time is counted; default `now`.
   */
  commit(batches: readonly Batch[], now: number, steady?: number): Promise<CommitOutcome[]>;

  createAgent(
    identity: AgentIdentity,
    account: NewAccount | null,
  ): Promise<{ readonly created: boolean; readonly record: AgentRecord }>;
  readAgent(key: AgentKey): Promise<AgentRecord | undefined>;
  listAgents(filter: AgentFilter): Promise<AgentRecord[]>;

  openTurn(key: AgentKey, command: TurnCommand, now: number): Promise<OpenTurnOutcome>;
  /** One that stands already is unchanged, except that it can be hastened: asked again with `now` it is posted again. */
  pause(key: AgentKey, by: string, now: number, options?: PauseMark): Promise<MarkOutcome>;
  resume(key: AgentKey, by: string, now: number): Promise<MarkOutcome>;
  /** Reaches every live descendant too, whether or not anybody owns them. */
  abort(key: AgentKey, command: AbortCommand, now: number): Promise<MarkOutcome>;
  /**
   * Decides an open request and posts the decision to its agent. Only the first decision counts, whoever sends it; from
   * `expiresAt` on any decision makes it `expired`, by nobody, whether or not its alarm was heard.
   */
  decide(
    key: AgentKey,
    requestId: string,
    decision: Decision,
    now: number,
    options?: DecideOptions,
  ): Promise<DecideOutcome>;

  /**
   * Registers a process with what its clock shows, and gives what is to be added to its `elapsed()` to have the store's
   * steady time: one time for all processes, begun when the first of them was registered, that no set clock moves. Leases
   * and working time are measured by it. Default of `elapsed`: `now`.
   */
  registerProcess(process: ProcessIdentity, now: number, elapsed?: number): Promise<number>;
  /** False for a process that is not registered, or has given no sign for so long that it was forgotten. */
  heartbeat(processId: string, steady: number): Promise<boolean>;
  /**
   * `leaseMs`: how long a process that gives no heartbeat is still believed to live. `isKnown`: whether the asker has the
   * definition of that name; where it has not, `unknown`, and nothing is changed. Default: it has all.
   */
  acquire(
    key: AgentKey,
    processId: string,
    leaseMs: number,
    steady: number,
    isKnown?: (definitionName: string) => boolean,
  ): Promise<AcquireOutcome>;
  /**
   * False when the epoch is an old one, and while the inbox holds something: no post is left behind unseen. For `parked`
   * turns that wait in line behind the open one do not count. An owner that is leaving gives the lease back all the same;
   * whoever takes the agent up next finds the posts.
   */
  release(key: AgentKey, epoch: number, options?: ReleaseOptions): Promise<boolean>;
  /**
   * Agents that somebody has to take up: those with an open turn or a post, which a dead process holds; those with a post,
   * which nobody holds; those that were left with an open turn. Not among them: who is shut down, whose turn is parked, and
   * posts that nobody can take: turns in line behind the open one, or that a pause holds. It costs as much as there are
   * of them, not as there are agents.
   */
  unattended(tenant: string, query: UnattendedQuery, steady: number): Promise<AgentKey[]>;
  /** Who holds the agent now, if anybody. */
  holder(key: AgentKey): Promise<{ readonly process: ProcessIdentity; readonly epoch: number } | undefined>;

  /**
   * Gives a queued call to whoever is about to run it, before anything of it runs. One that may not be repeated is given
   * once, whoever asks; a repeatable one each time.
   */
  claimCall(key: AgentKey, claim: CallClaim, steady: number): Promise<CallClaimOutcome>;
  /**
   * Tells the agent what became of a queued call; the first one counts. Nothing is posted where the agent goes on without
   * the call. The item's key is given by the stores.
   */
  postCallEnd(key: AgentKey, item: CallEndedItem): Promise<{ readonly posted: readonly string[] }>;

  inbox(key: AgentKey): Promise<InboxItem[]>;
  /** Rows that hold entries from `fromSeq` on. */
  readJournal(key: AgentKey, fromSeq: number): Promise<JournalRow[]>;
  /** Rows of the whole tree after a cursor, in order; at most `limit`. */
  readTree(tenant: string, rootAgentId: string, afterCursor: number, limit: number): Promise<JournalRow[]>;

  messages(key: AgentKey, query?: MessageQuery): Promise<Message[]>;
  messagesById(key: AgentKey, ids: readonly string[]): Promise<Message[]>;
  /** Oldest first, without their content. */
  artifacts(key: AgentKey): Promise<Omit<Artifact, "content">[]>;
  artifact(key: AgentKey, artifactId: string): Promise<Artifact | undefined>;
  /** The newest of that name, or the one of a version. */
  artifactByName(key: AgentKey, name: string, version?: number): Promise<Artifact | undefined>;
  /** Requests stay after they were decided or closed, and after their turn has ended. */
  requests(filter: RequestFilter): Promise<AgentRequest[]>;
  request(key: AgentKey, requestId: string): Promise<AgentRequest | undefined>;
  accounts(tenant: string, rootAgentId: string): Promise<Account[]>;
  /** Calls of the tree that wait for others' reservations, in the order of their first asks. */
  waiters(tenant: string, rootAgentId: string): Promise<Waiter[]>;
  account(tenant: string, accountId: string): Promise<Account | undefined>;
  /** Whether somebody still works in a tree; undefined where none of its requests is open. */
  standing(tenant: string, rootAgentId: string): Promise<TreeStanding | undefined>;
  /** Timers that are due, oldest first: those of working time at `steady` (default `now`), all others at `now`. */
  dueTimers(now: number, limit: number, steady?: number): Promise<Timer[]>;
  /**
   * Answers an alarm of an account that is due, whoever owns its agent: room that was kept for somebody who does not ask
   * goes to the next in line, the warning of a limit on time is posted to the agent. That of a queued call gives the call,
   * whose job may be lost, and is set anew (`JOB_LOOK_MS`). `steady`: default `now`.
   */
  hearAlarm(timer: AccountAlarm | JobAlarm, now: number, steady?: number): Promise<HeardAlarm>;
  /** The earliest time of all timers, whichever of the two times it is meant by. */
  nextTimerAt(): Promise<number | undefined>;
  /** One timer of an agent, as it is set now. */
  timer(key: AgentKey, timerId: string): Promise<Timer | undefined>;

  /** Everything of a tree as it stands at one moment; undefined where its root has no record. */
  exportTree(tenant: string, rootAgentId: string): Promise<StoredTree | undefined>;
  /**
   * Puts a tree in the place of what is stored of it, in one transaction. Agents that were held are held by `processId`
   * from now on (register it first), the others by nobody. Epochs do not go back, and an owner here that is another process is
   * fenced off. Rows keep their order under growing cursors; where the tree only adds to the rows stored here, those
   * keep the cursors they have. Throws `InvalidInputError` for a tree whose parts do not belong together.
   * With `known`, the keys of inbox items by agent id that the tree has taken account of: false, and nothing is changed,
   * when an inbox here holds another one, since its sender was told that it is kept.
   */
  importTree(tree: StoredTree, processId: string, known?: KnownItems): Promise<boolean>;

  /** The cursor up to which a projection has taken a tree's rows; 0 at first (row L11). */
  projectionCursor(tenant: string, name: string, rootAgentId: string): Promise<number>;
  /** Notes how far a projection has come. It never goes back: a lower cursor changes nothing. */
  moveProjection(tenant: string, name: string, rootAgentId: string, cursor: number): Promise<void>;

  /** What is not stored, on its way to those who follow a tree. */
  readonly live: LiveChannel;
  /** Called when another process wrote to the store, with what is known of it; the returned function ends it. */
  onForeignWrite(listener: (writes: ForeignWrites) => void): () => void;
  /**
   * Called when the stores are found to have lost what they had acknowledged of a tree; the returned function ends it. Only
   * what this process has seen of the tree is compared.
   */
  onSetBack(listener: (found: SetBack) => void): () => void;
  close(): Promise<void>;
}

/** What other processes wrote to one tree. */
export interface ForeignWrite {
  readonly tenant: string;
  readonly rootAgentId: string;
  /** Whose inboxes got something; null: perhaps anybody's. */
  readonly posted: readonly string[] | null;
  /** Whose records were changed: every turn's end changes its agent's. null: perhaps anybody's. */
  readonly records: readonly string[] | null;
  /** When the first of the timers that were set is due, by whichever clock it is meant; null: none was. */
  readonly timerAt: number | null;
}

/** Writes of other processes; "any" where it is not known to what. */
export type ForeignWrites = readonly ForeignWrite[] | "any";

/** Whether the tree of an agent may have been changed. */
export function isTreeChanged(writes: ForeignWrites, { tenant, agentId }: AgentKey): boolean {
  const root = rootOf(agentId);
  return writes === "any" || writes.some((write) => write.tenant === tenant && write.rootAgentId === root);
}

/** Whether something may have come for an agent. */
export function isPostedTo(writes: ForeignWrites, key: AgentKey): boolean {
  return isNamed(writes, key, "posted");
}

/** Whether an agent's record may have been changed. */
export function isRecordChanged(writes: ForeignWrites, key: AgentKey): boolean {
  return isNamed(writes, key, "records");
}

function isNamed(writes: ForeignWrites, { tenant, agentId }: AgentKey, as: "posted" | "records"): boolean {
  if (writes === "any") return true;
  const root = rootOf(agentId);
  const isAmong = ({ [as]: named }: ForeignWrite): boolean => named === null || named.includes(agentId);
  return writes.some((write) => write.tenant === tenant && write.rootAgentId === root && isAmong(write));
}

/**
 * A tree of which the stores have lost the last changes, though they had acknowledged them: a server that does not sync each
 * write was killed, a replica took over that had not everything yet, or a backup was put in place.
 */
export interface SetBack {
  readonly tenant: string;
  readonly rootAgentId: string;
  /** When the newest change was made that this process knows of, in milliseconds since the epoch. */
  readonly hadAt: number;
  /** When the newest one was made that is left; null where nothing is left of the tree. */
  readonly foundAt: number | null;
}

/** Who works in a tree and what it waits for, as it stood at one moment. */
export interface TreeStanding {
  readonly agents: readonly AgentRecord[];
  readonly accounts: readonly Account[];
  /** In the order of their opening. */
  readonly openRequests: readonly AgentRequest[];
  /** What lies in the inboxes of those that have an open turn, by their ids. */
  readonly inboxes: ReadonlyMap<string, readonly InboxItem[]>;
}

/** A row of the journal with the messages that came with it; the order of rows and in them is that of the messages. */
export interface StoredRow extends JournalRow {
  readonly messages: readonly Message[];
}

/** One agent with all that is its own. */
export interface StoredAgent {
  readonly record: AgentRecord;
  readonly epoch: number;
  /** Whether a process held its lease. */
  readonly isHeld: boolean;
  /** Last committed entry, and its time; 0 when there is none. */
  readonly seq: number;
  readonly at: number;
  /** The last sign of life of its owner, in the store's steady time. */
  readonly sign: number;
  /** Whether its turn was parked. Absent: no. */
  readonly isParked?: boolean;
  /** The last applied batch and its answer, for the case that it is sent again. */
  readonly lastBatch: { readonly id: string; readonly outcome: Committed } | null;
  readonly artifacts: readonly Artifact[];
  readonly inbox: readonly InboxItem[];
  readonly timers: readonly Timer[];
  readonly requests: readonly AgentRequest[];
}

/** Keys of inbox items by agent id. */
export type KnownItems = ReadonlyMap<string, ReadonlySet<string>>;

/** Everything that a store knows of one tree, as one plain value: it may be written as JSON. */
export interface StoredTree {
  readonly tenant: string;
  readonly rootAgentId: string;
  /** In the order in which they were made. */
  readonly agents: readonly StoredAgent[];
  readonly accounts: readonly Account[];
  /** Those who wait on the accounts at the top, by account id. */
  readonly lines: Readonly<Record<string, readonly Waiter[]>>;
  /** Rows of all its agents in the order of their cursors. */
  readonly rows: readonly StoredRow[];
  /** How far each projection has come. */
  readonly projections: readonly { readonly name: string; readonly cursor: number }[];
}
