import type { TroupeError } from "../errors/index.ts";
import type { AgentKey } from "../state/index.ts";
import type { TraceHeaders } from "../base/index.ts";
import type { Job, ToolJob, ToolJobKey, WakeJob } from "./jobs.ts";

/** The queue in which agents wait to be activated. Tools may not have a queue of this name. */
export const WAKE_QUEUE = "wake";

export interface AddOptions {
  /** Whole number from 0 to 1,000,000; the lowest runs first, equal ones in the order in which they were added. Default 0. */
  readonly priority?: number | undefined;
  /** Whole milliseconds before the job may run. Default 0. */
  readonly delayMs?: number | undefined;
}

/**
 * `removed`: the job waited, and will not run. `asked`: it runs, and its worker aborts its signal within `cancelCheckMs`. `unknown`: the
 * job does not exist; it has ended, or was never added.
 */
export type CancelOutcome = "removed" | "asked" | "unknown";

/** `again`: the job returns to the front of its queue, for any worker; no attempt is counted. */
export type JobOutcome = "done" | "again";

/** What a processor can read about the run of a job. */
export interface JobRun {
  readonly queue: string;
  /**
   * Aborted with a `JobStoppedError` when the job is cancelled, takes too long, or the time of a drain is over. A processor that
   * continues nevertheless is given up soon after, and its outcome is ignored.
   */
  readonly signal: AbortSignal;
  /** Aborted when a drain begins: stop at the next safe point, and return `again` if work remains. */
  readonly leaving: AbortSignal;
  /** How many workers died, or were silent for too long, while they ran this job. */
  readonly deaths: number;
}

/**
 * `worker_died`: the job's workers died or were silent for `lockMs` too often. `failed`: its processor threw a permanent error, or threw
 * too often. `timed_out`: it did not end in time. `stopped`: its worker left, and it may not be repeated. `refused`: this program did not
 * add it; it was not run.
 */
export type DeadCode = "worker_died" | "failed" | "timed_out" | "stopped" | "refused";

/** Why a job was given up. */
export interface DeadCause {
  readonly code: DeadCode;
  /** For people; contains no secrets. */
  readonly message: string;
  /** See `JobRun.deaths`. */
  readonly deaths: number;
}

export interface DeadLetter {
  readonly queue: string;
  readonly jobId: string;
  /** The job; null if its content cannot be trusted. */
  readonly job: Job | null;
  readonly cause: DeadCause;
  /** When it was given up, in milliseconds since the epoch. */
  readonly at: number;
}

export interface ToolQueueOptions {
  /** How many of the queue's jobs this process runs at a time. Default 1. */
  readonly concurrency?: number | undefined;
  /** At most `max` jobs start per `perMs` milliseconds, in all processes together. Default: no limit. */
  readonly rateLimit?: { readonly max: number; readonly perMs: number } | undefined;
}

/**
 * How a process runs jobs. If a processor throws an error with `retryable: true`, it is called again after a pause; any other error makes
 * a dead letter. A processor stores its results before it returns: queues carry no results.
 */
export interface WorkOptions {
  readonly wakes?:
    | {
        readonly concurrency: number;
        readonly run: (job: WakeJob, run: JobRun) => Promise<JobOutcome>;
        /**
         * For each of these agents, whether a worker has to activate it. The last worker that leaves calls it for the waiting wakes, and
         * removes the wakes of agents that need none. Default: all wakes stay.
         */
        readonly areNeeded?: ((agents: readonly AgentKey[]) => Promise<readonly boolean[]>) | undefined;
      }
    | undefined;
  readonly tools?:
    | {
        /** The queues that this process works on, by name. */
        readonly queues: Readonly<Record<string, ToolQueueOptions>>;
        readonly run: (job: ToolJob, run: JobRun) => Promise<JobOutcome>;
      }
    | undefined;
  /**
   * Called at least once before a job becomes a dead letter, so that the agent is informed. While the callback throws, it is called again
   * and no dead letter is made. Not called for refused jobs: their content cannot be trusted.
   */
  readonly onDead: (job: Job, cause: DeadCause) => Promise<void>;
  /** Called for faults that stop nothing: a lost lock, a broken connection. Default: they are ignored. */
  readonly onFault?: ((error: TroupeError) => void) | undefined;
}

/** The number of jobs of one queue in each state. */
export interface QueueCount {
  /** Name of the queue. */
  readonly queue: string;
  /** Jobs that wait for a worker. */
  readonly waiting: number;
  /** Jobs that run. */
  readonly active: number;
  /** Jobs whose delay is not over. */
  readonly delayed: number;
  /** Dead letters that are kept. */
  readonly dead: number;
  /** When the oldest waiting job was added, in milliseconds since the epoch; `null` if no readable job waits. */
  readonly waitingSince: number | null;
  /** When the longest running job was started, in milliseconds since the epoch; `null` if no readable job runs. */
  readonly activeSince: number | null;
  /** Jobs whose worker this process has found dead since it started. */
  readonly deaths: number;
  /** Jobs that this process has refused since it started. */
  readonly refused: number;
}

/** Result of a health check. */
export interface QueueHealth {
  /** Whether the canary returned in time and no problem was found. */
  readonly isHealthy: boolean;
  /** Round trip of the canary, in milliseconds; `null` if it did not return in time. */
  readonly roundTripMs: number | null;
  /** The problems, as texts for people. */
  readonly problems: readonly string[];
}

export interface DrainOptions {
  /** Whole milliseconds after which the drain ends, even if jobs still run. */
  readonly timeoutMs: number;
}

export interface DrainOutcome {
  /** Jobs that did not end in time; 0 if all did. */
  readonly left: number;
}

/**
 * How processes hand work to each other. Queues store what is to be done and never its result: a queue may lose its data, the stores may
 * not.
 *
 * Invariants
 * 1. Of one agent at most one wake runs and one waits. A wake that is requested while one runs is run after it, even if the first
 *    one fails.
 * 2. A tool job is identified by its agent, call and attempt. Adding it again changes nothing while it waits, runs or is a dead letter;
 *    after it has ended, or was refused, it runs again, and its processor checks what was done.
 * 3. A job runs at least once. It runs twice at a time only if its worker was silent for `lockMs`.
 * 4. A job whose worker died is repeated at most once; one with `isRepeatable: false` is not repeated.
 * 5. Every job that fails becomes a dead letter, after `onDead` was called; none is dropped silently.
 * 6. Bad arguments throw `InvalidInputError`; unreachable queues throw `StoreUnavailableError` after `timeoutMs`, and the call may then
 *    be repeated.
 */
export interface Queues {
  readonly kind: string;

  /** Requests that a worker activates the agent. */
  wake(agent: AgentKey, trace?: TraceHeaders): Promise<void>;
  /**
   * For each of these agents, whether its wake is running or waits for its first run, so that another wake would change nothing. A wake
   * that waits for its next try does not count, nor does one whose worker was found dead.
   */
  awaited(agents: readonly AgentKey[]): Promise<boolean[]>;
  add(queue: string, job: Omit<ToolJob, "kind">, options?: AddOptions): Promise<void>;
  /** Removes a waiting job, or asks the worker of a running one to stop it. This makes no dead letter and does not call `onDead`. */
  cancel(queue: string, job: ToolJobKey, reason: string): Promise<CancelOutcome>;

  /**
   * Starts working. Once per process; throws `InvariantError` when it is called again, or after `drain`. Processors may be called before
   * it resolves.
   */
  work(options: WorkOptions): Promise<void>;

  /** Queues that any process has added to or worked on, sorted by name, including the wake queue. */
  names(): Promise<string[]>;
  /** Counts of the given queues. Default: all that this process has used. */
  counts(queues?: readonly string[]): Promise<QueueCount[]>;
  /**
   * How many processes work on that queue (default: the wake queue). A process stops counting when it leaves, or `lockMs` after it died.
   */
  workers(queue?: string): Promise<number>;
  /** Newest first, at most `limit` (100). */
  deadLetters(queue: string, options?: { readonly limit?: number | undefined }): Promise<DeadLetter[]>;
  /**
   * Sends a canary through the queue, and checks whether jobs wait although this process has free slots. Resolves within little more than
   * `timeoutMs` (5,000), and does not throw.
   */
  health(options?: { readonly timeoutMs?: number | undefined }): Promise<QueueHealth>;

  /**
   * Starts no more jobs. Running ones continue; shortly before the time limit their signals are aborted. It resolves within the time
   * limit. Further calls return the same promise. Jobs can still be added, for other processes.
   */
  drain(options: DrainOptions): Promise<DrainOutcome>;
  /** Drains (for at most a second if `drain` was not called before) and closes all connections. Further calls do nothing. */
  close(): Promise<void>;
}
