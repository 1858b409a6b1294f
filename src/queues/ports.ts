import type { TroupeError } from "../errors/index.ts";
import type { AgentKey } from "../state/index.ts";
import type { TraceHeaders } from "../base/index.ts";
import type { Job, ToolJob, ToolJobKey, WakeJob } from "./jobs.ts";

/** The queue in which agents wait to be taken up. Tools may not have a queue of this name. */
export const WAKE_QUEUE = "wake";

export interface AddOptions {
  /** Whole number from 0 to 1,000,000, the lowest first; those of one priority in the order in which they came. Default 0. */
  readonly priority?: number | undefined;
  /** Whole milliseconds before which it does not run. Default 0. */
  readonly delayMs?: number | undefined;
}

/**
 * `removed`: it waited, and will not run. `asked`: it runs, and whoever runs it aborts its signal within `cancelCheckMs`.
 * `unknown`: no such job is there; it has ended, or was never added.
 */
export type CancelOutcome = "removed" | "asked" | "unknown";

/** `again`: it goes back to the front of its queue, for any worker; nothing is counted against it. */
export type JobOutcome = "done" | "again";

/** What a processor knows of the run of a job. */
export interface JobRun {
  readonly queue: string;
  /**
   * Aborted with a `JobStoppedError` when the job is cancelled, has taken too long, or the time of a drain is over. A
   * processor that goes on all the same is given up soon after, and what it does then is nobody's business any more.
   */
  readonly signal: AbortSignal;
  /** Aborted when a drain begins: come to rest at the next safe point, and give `again` if something is left to do. */
  readonly leaving: AbortSignal;
  /** How many workers have died, or were not heard of for too long, while they ran this job. */
  readonly deaths: number;
}

/**
 * `worker_died`: the job ended its worker, or its worker was not heard of for `lockMs`, too often. `failed`: its processor
 * threw what no repetition mends, or threw too often. `timed_out`: it did not end in time. `stopped`: its worker left, and
 * it may not be repeated. `refused`: it is not one that this program has added; it was not run.
 */
export type DeadCode = "worker_died" | "failed" | "timed_out" | "stopped" | "refused";

/** Why a job was given up. */
export interface DeadCause {
  readonly code: DeadCode;
  /** For people; holds no secret. */
  readonly message: string;
  /** As `JobRun.deaths`. */
  readonly deaths: number;
}

export interface DeadLetter {
  readonly queue: string;
  readonly jobId: string;
  /** What it was about; null where that is not to be trusted. */
  readonly job: Job | null;
  readonly cause: DeadCause;
  /** When it was given up, in milliseconds since the epoch. */
  readonly at: number;
}

export interface ToolQueueOptions {
  /** How many of its jobs run at a time in this process. Default 1. */
  readonly concurrency?: number | undefined;
  /** At most `max` jobs are begun in `perMs` milliseconds, by all processes together. Default: any number. */
  readonly rateLimit?: { readonly max: number; readonly perMs: number } | undefined;
}

/**
 * What a process does with jobs. A processor that throws an error with `retryable: true` is called again after a while;
 * whatever else it throws makes a dead letter. What it has to say it says before it returns: queues carry no results.
 */
export interface WorkOptions {
  readonly wakes?:
    | { readonly concurrency: number; readonly run: (job: WakeJob, run: JobRun) => Promise<JobOutcome> }
    | undefined;
  readonly tools?:
    | {
        /** The queues that are worked on here, by their names. */
        readonly queues: Readonly<Record<string, ToolQueueOptions>>;
        readonly run: (job: ToolJob, run: JobRun) => Promise<JobOutcome>;
      }
    | undefined;
  /**
   * Called at least once before a job becomes a dead letter, so that its agent hears of it. While it throws, it is tried
   * again and the dead letter waits. It is not called for jobs that were refused: what they say is not to be trusted.
   */
  readonly onDead: (job: Job, cause: DeadCause) => Promise<void>;
  /** Told of faults that stop nothing: a lock that was lost, a connection that broke. Default: nobody is told. */
  readonly onFault?: ((error: TroupeError) => void) | undefined;
}

export interface QueueCount {
  readonly queue: string;
  readonly waiting: number;
  readonly active: number;
  readonly delayed: number;
  /** Dead letters that are kept. */
  readonly dead: number;
  /** Jobs whose worker was found dead by this process since it began. */
  readonly deaths: number;
  /** Jobs that this process has refused since it began. */
  readonly refused: number;
}

export interface QueueHealth {
  readonly isHealthy: boolean;
  /** How long the canary took; null when it did not come back in time. */
  readonly roundTripMs: number | null;
  /** What is wrong, in words. */
  readonly problems: readonly string[];
}

export interface DrainOptions {
  /** Whole milliseconds after which the drain is over, whatever still runs. */
  readonly timeoutMs: number;
}

export interface DrainOutcome {
  /** Jobs that had not ended when the time was over; 0 when all have. */
  readonly left: number;
}

/**
 * How processes hand work to one another. Queues know who is to do something, never what came of it: they may forget, and
 * the stores do not.
 *
 * Invariants
 * 1. Of one agent at most one wake runs and one waits. A wake that is asked for while one runs is run after it, whatever
 *    becomes of the first.
 * 2. A tool job is known by its agent, call and attempt. Added while it waits or runs or is a dead letter, nothing changes;
 *    added when it has ended, or was refused, it runs again: whoever runs it knows what was done.
 * 3. A job runs at least once, and not twice at a time unless its worker was not heard of for `lockMs`.
 * 4. A job that its worker did not survive is repeated at most once; one with `isRepeatable: false` is not repeated.
 * 5. Whatever does not end well becomes a dead letter, after `onDead` was told; nothing is dropped in silence.
 * 6. Bad arguments throw `InvalidInputError`; queues that cannot be reached throw `StoreUnavailableError` after `timeoutMs`,
 *    and the same call may then be made again.
 */
export interface Queues {
  readonly kind: string;

  /** Has some worker take the agent up. */
  wake(agent: AgentKey, trace?: TraceHeaders): Promise<void>;
  /**
   * Of each of these agents, whether a wake of it waits for its first run, or runs: another one would change nothing. One that
   * waits for its next try does not count, and none whose worker was not heard of for `lockMs`.
   */
  awaited(agents: readonly AgentKey[]): Promise<boolean[]>;
  add(queue: string, job: Omit<ToolJob, "kind">, options?: AddOptions): Promise<void>;
  /** Takes a job away that waits, or asks whoever runs it to stop; no dead letter comes of it, and nobody else is told. */
  cancel(queue: string, job: ToolJobKey, reason: string): Promise<CancelOutcome>;

  /**
   * Begins to work. Once per process; throws `InvariantError` when it is called again, or after `drain`. Processors may be
   * called before it resolves.
   */
  work(options: WorkOptions): Promise<void>;

  /** Queues that some process has added to or worked on, in the order of their names; wakes among them. */
  names(): Promise<string[]>;
  /** Of the queues named; by default of all that this process has used. */
  counts(queues?: readonly string[]): Promise<QueueCount[]>;
  /**
   * How many processes work on that queue, or on wakes where none is named. One that leaves is not counted any more, and one
   * that has died is not when `lockMs` have passed.
   */
  workers(queue?: string): Promise<number>;
  /** The newest first, at most `limit` (100). */
  deadLetters(queue: string, options?: { readonly limit?: number | undefined }): Promise<DeadLetter[]>;
  /**
   * Sends a canary round, and looks whether this process leaves work lying that it has room for. It resolves within
   * `timeoutMs` (5,000) and a little more, and does not throw.
   */
  health(options?: { readonly timeoutMs?: number | undefined }): Promise<QueueHealth>;

  /**
   * Nothing new is begun from now on. What runs goes on; shortly before the end of the time its signals are aborted. It
   * resolves within the time. Called again it gives the same promise. Jobs can still be added, for others.
   */
  drain(options: DrainOptions): Promise<DrainOutcome>;
  /** Drains, within a second where nobody has before, and lets go of everything. Called again it does nothing. */
  close(): Promise<void>;
}
