import type { TroupeError } from "../errors/index.ts";
import type { AgentKey } from "../state/index.ts";
import type { TraceHeaders } from "../base/index.ts";
import type { Job, ToolJob, ToolJobKey, WakeJob } from "./jobs.ts";

/** The queue in which agents wait to be activated. Tools may not have a queue of this name. */
export const WAKE_QUEUE = "wake";

export interface AddOptions {
  /** Whole number from 0 to 1,000,000; the lowest runs first, equal ones in the order of arrival. Default 0. */
  readonly priority?: number | undefined;
  /** Whole milliseconds before it may run. Default 0. */
  readonly delayMs?: number | undefined;
}

/**
 * `removed`: it waited, and will not run. `asked`: it runs, and its worker aborts its signal within `cancelCheckMs`.
 * `unknown`: there is no such job; it has ended, or was never added.
 */
export type CancelOutcome = "removed" | "asked" | "unknown";

/** `again`: it goes back to the front of its queue, for any worker; no attempt is counted. */
export type JobOutcome = "done" | "again";

/** A processor's view of the run of a job. */
export interface JobRun {
  readonly queue: string;
  /**
   * Aborted with a `JobStoppedError` when the job is cancelled, takes too long, or the time of a drain is over. A
   * processor that goes on nevertheless is given up soon after, and its outcome is ignored.
   */
  readonly signal: AbortSignal;
  /** Aborted when a drain begins: stop at the next safe point, and return `again` if there is something left to do. */
  readonly leaving: AbortSignal;
  /** How many workers have died, or were silent for too long, while they ran this job. */
  readonly deaths: number;
}

/**
 * `worker_died`: too often, the job's worker died or was silent for `lockMs`. `failed`: its processor threw a permanent
 * error, or threw too often. `timed_out`: it did not end in time. `stopped`: its worker left, and it may not be
 * repeated. `refused`: this program did not add it; it was not run.
 */
export type DeadCode = "worker_died" | "failed" | "timed_out" | "stopped" | "refused";

/** Why a job was given up. */
export interface DeadCause {
  readonly code: DeadCode;
  /** For people; contains no secret. */
  readonly message: string;
  /** As `JobRun.deaths`. */
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
  /** How many of its jobs run at a time in this process. Default 1. */
  readonly concurrency?: number | undefined;
  /** At most `max` jobs start per `perMs` milliseconds, in all processes together. Default: no limit. */
  readonly rateLimit?: { readonly max: number; readonly perMs: number } | undefined;
}

/**
 * How a process runs jobs. A processor that throws an error with `retryable: true` is called again after a pause; any
 * other error makes a dead letter. A processor stores its results before it returns: queues carry no results.
 */
export interface WorkOptions {
  readonly wakes?:
    | {
        readonly concurrency: number;
        readonly run: (job: WakeJob, run: JobRun) => Promise<JobOutcome>;
        /**
         * For each of these agents, whether some worker has to activate it. The last worker that leaves asks it about the
         * wakes that wait, and removes the others. Default: all of them stay.
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
   * Called at least once before a job becomes a dead letter, so that the agent is told. While the callback throws, it is
   * called again and the dead letter waits. It is not called for refused jobs: their content cannot be trusted.
   */
  readonly onDead: (job: Job, cause: DeadCause) => Promise<void>;
  /** Called for faults that stop nothing: a lost lock, a broken connection. Default: they are ignored. */
  readonly onFault?: ((error: TroupeError) => void) | undefined;
}

/** How many jobs of one queue are in which state. */
export interface QueueCount {
  /** Name of the queue. */
  readonly queue: string;
  /** Jobs that wait for a worker. */
  readonly waiting: number;
  /** Jobs that run. */
  readonly active: number;
  /** Jobs that wait for their time. */
  readonly delayed: number;
  /** Dead letters that are kept now. */
  readonly dead: number;
  /** When the oldest waiting job was added, in milliseconds since the epoch; `null` if no readable job waits. */
  readonly waitingSince: number | null;
  /** When the job that has run longest was begun; `null` if no readable job runs. */
  readonly activeSince: number | null;
  /** Jobs whose worker this process has found dead since it started. */
  readonly deaths: number;
  /** Jobs that this process has refused since it started. */
  readonly refused: number;
}

/** Whether the queues answer. */
export interface QueueHealth {
  /** Whether the canary came back in time and no problem was found. */
  readonly isHealthy: boolean;
  /** Round trip of the canary; null when it did not come back in time. */
  readonly roundTripMs: number | null;
  /** The problems, in words. */
  readonly problems: readonly string[];
}

export interface DrainOptions {
  /** Whole milliseconds after which the drain ends, even if jobs still run. */
  readonly timeoutMs: number;
}

export interface DrainOutcome {
  /** Jobs that had not ended in time; 0 when all have. */
  readonly left: number;
}

/**
 * How processes hand work to one another. Queues know what is to be done and never its result: a queue may lose its
 * data, the stores may not.
 *
 * Invariants
 * 1. Of one agent at most one wake runs and one waits. A wake that is requested while one runs is run after it, however
 *    the first one ends.
 * 2. A tool job is identified by its agent, call and attempt. Adding it again changes nothing while it waits, runs or
 *    is a dead letter; after it has ended, or was refused, it runs again: its processor knows what was done.
 * 3. A job runs at least once, and not twice at a time unless its worker was silent for `lockMs`.
 * 4. A job whose worker died is repeated at most once; one with `isRepeatable: false` is not repeated.
 * 5. Every job that does not end well becomes a dead letter, after `onDead` was called; none is dropped silently.
 * 6. Bad arguments throw `InvalidInputError`; unreachable queues throw `StoreUnavailableError` after `timeoutMs`, and
 *    the same call may then be made again.
 */
export interface Queues {
  readonly kind: string;

  /** Asks some worker to activate the agent. */
  wake(agent: AgentKey, trace?: TraceHeaders): Promise<void>;
  /**
   * For each of these agents, whether a wake of it runs or waits for its first run: another one would change nothing. A
   * wake that waits for its next try does not count, nor does one whose worker was found dead.
   */
  awaited(agents: readonly AgentKey[]): Promise<boolean[]>;
  add(queue: string, job: Omit<ToolJob, "kind">, options?: AddOptions): Promise<void>;
  /**
   * Removes a waiting job, or asks the worker of a running one to stop it; this makes no dead letter, and `onDead` is
   * not called.
   */
  cancel(queue: string, job: ToolJobKey, reason: string): Promise<CancelOutcome>;

  /**
   * Starts to work. Once per process; throws `InvariantError` when it is called again, or after `drain`. Processors may
   * be called before it resolves.
   */
  work(options: WorkOptions): Promise<void>;

  /** Queues that some process has added to or worked on, sorted by name, the wake queue included. */
  names(): Promise<string[]>;
  /** Counts of the given queues; by default of all that this process has used. */
  counts(queues?: readonly string[]): Promise<QueueCount[]>;
  /**
   * How many processes work on that queue; by default on the wake queue. A process is no longer counted when it leaves,
   * and `lockMs` after it has died.
   */
  workers(queue?: string): Promise<number>;
  /** The newest first, at most `limit` (100). */
  deadLetters(queue: string, options?: { readonly limit?: number | undefined }): Promise<DeadLetter[]>;
  /**
   * Sends a canary through the queue, and checks whether this process leaves work waiting that it has room for. It
   * resolves within `timeoutMs` (5,000) and a little more, and does not throw.
   */
  health(options?: { readonly timeoutMs?: number | undefined }): Promise<QueueHealth>;

  /**
   * Starts no more jobs. Running ones go on; shortly before the end of the time their signals are aborted. It resolves
   * within the time. Further calls return the same promise. Jobs can still be added, for other processes.
   */
  drain(options: DrainOptions): Promise<DrainOutcome>;
  /** Drains, within a second if there was no drain before, and closes all connections. Further calls do nothing. */
  close(): Promise<void>;
}
