import type { Account, BudgetWarning, Limits, NewAccount } from "../budget/index.ts";
import type {
  AgentIdentity,
  AgentKey,
  AgentRecord,
  Artifact,
  Content,
  Entry,
  InboxItem,
  JournalRow,
  Lifecycle,
  Message,
  StopReason,
  Timer,
} from "../state/index.ts";
import type { Batch } from "./batch.ts";

export interface Committed {
  readonly type: "committed";
  /** The entries as they now stand: granted intents hold their reservation, refused ones are `intent.refused`. */
  readonly entries: readonly Entry[];
  readonly cursor: number;
  readonly warnings: readonly BudgetWarning[];
  /** Agents of the tree whose inbox got something. */
  readonly posted: readonly string[];
  /** Timers this commit set, so that whoever holds the clock need not look. */
  readonly timers: readonly Timer[];
}

/** The lease is lost or the journal has moved on: the caller owns nothing any more and discards its actors. */
export interface Stale {
  readonly type: "stale";
  readonly epoch: number;
  readonly seq: number;
}

export type CommitOutcome = Committed | Stale;

export interface ProcessIdentity {
  readonly processId: string;
  readonly pid: number;
  /** Tells one boot of a machine from another; a dead pid of the same boot is taken over at once. */
  readonly bootId: string;
}

export type AcquireOutcome =
  | {
      readonly type: "acquired";
      readonly epoch: number;
      /** Last committed entry. */
      readonly seq: number;
      /** Time of the last entry, so that time never goes back within a journal. */
      readonly at: number;
      readonly record: AgentRecord;
    }
  | { readonly type: "held"; readonly by: ProcessIdentity; readonly epoch: number }
  | { readonly type: "notFound" };

export interface TurnCommand {
  readonly input: Content | null;
  readonly actorId: string | null;
  readonly limits: Limits | null;
  /** Wait in line behind an open turn instead of being refused. */
  readonly queue: boolean;
}

export type OpenTurnOutcome =
  | { readonly type: "opened" | "queued"; readonly turnId: string; readonly number: number; readonly item: InboxItem }
  | { readonly type: "busy"; readonly openTurnId: string }
  | { readonly type: "refused"; readonly status: Lifecycle }
  | { readonly type: "notFound" };

export interface AbortCommand {
  readonly turnId: string | null;
  readonly by: string;
  readonly reason: string;
  readonly stopReason: StopReason;
}

/** Whether the command changed anything, and whose inboxes it posted to. */
export type MarkOutcome =
  | { readonly type: "marked" | "unchanged"; readonly posted: readonly string[] }
  | { readonly type: "notFound" };

export interface AgentFilter {
  readonly tenant: string;
  readonly rootAgentId?: string | undefined;
  readonly sessionId?: string | undefined;
  readonly ownerId?: string | undefined;
  readonly rootsOnly?: boolean | undefined;
  /** At most this many, 100 by default; they come in the order of their ids. */
  readonly limit?: number | undefined;
  /** Continue after this agent id. */
  readonly after?: string | undefined;
}

export interface MessageQuery {
  /** Only the newest so many; in order, oldest first. */
  readonly maxMessages?: number | undefined;
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
   * again one by one, each answers for itself.
   */
  commit(batches: readonly Batch[], now: number): Promise<CommitOutcome[]>;

  createAgent(
    identity: AgentIdentity,
    account: NewAccount | null,
  ): Promise<{ readonly created: boolean; readonly record: AgentRecord }>;
  readAgent(key: AgentKey): Promise<AgentRecord | undefined>;
  listAgents(filter: AgentFilter): Promise<AgentRecord[]>;

  openTurn(key: AgentKey, command: TurnCommand, now: number): Promise<OpenTurnOutcome>;
  pause(key: AgentKey, by: string, now: number): Promise<MarkOutcome>;
  resume(key: AgentKey, by: string, now: number): Promise<MarkOutcome>;
  /** Reaches every live descendant too, whether or not anybody owns them. */
  abort(key: AgentKey, command: AbortCommand, now: number): Promise<MarkOutcome>;

  registerProcess(process: ProcessIdentity, now: number): Promise<void>;
  heartbeat(processId: string, now: number): Promise<void>;
  /** `leaseMs`: how long a process that gives no heartbeat is still believed to live. */
  acquire(key: AgentKey, processId: string, leaseMs: number, now: number): Promise<AcquireOutcome>;
  /**
   * False when the epoch is an old one, and while the inbox holds something: no post is left behind unseen. An owner that
   * is leaving gives the lease back all the same; whoever takes the agent up next finds the posts.
   */
  release(key: AgentKey, epoch: number, options?: { readonly isLeaving?: boolean }): Promise<boolean>;
  /** Who holds the agent now, if anybody. */
  holder(key: AgentKey): Promise<{ readonly process: ProcessIdentity; readonly epoch: number } | undefined>;

  inbox(key: AgentKey): Promise<InboxItem[]>;
  /** Rows that hold entries from `fromSeq` on. */
  readJournal(key: AgentKey, fromSeq: number): Promise<JournalRow[]>;
  /** Rows of the whole tree after a cursor, in order; at most `limit`. */
  readTree(tenant: string, rootAgentId: string, afterCursor: number, limit: number): Promise<JournalRow[]>;

  messages(key: AgentKey, query?: MessageQuery): Promise<Message[]>;
  messagesById(key: AgentKey, ids: readonly string[]): Promise<Message[]>;
  artifacts(key: AgentKey): Promise<Omit<Artifact, "content">[]>;
  artifact(key: AgentKey, artifactId: string): Promise<Artifact | undefined>;
  accounts(tenant: string, rootAgentId: string): Promise<Account[]>;
  /** Timers that are due, oldest first. */
  dueTimers(now: number, limit: number): Promise<Timer[]>;
  nextTimerAt(): Promise<number | undefined>;

  /** Called when another process wrote to the store; the returned function ends it. */
  onForeignWrite(listener: () => void): () => void;
  close(): Promise<void>;
}
