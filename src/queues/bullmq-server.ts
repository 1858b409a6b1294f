import type { Job as BullJob, Queue, Worker, WorkerOptions } from "bullmq";
import type * as Bullmq from "bullmq";
import { UnsupportedError, type TroupeError } from "../errors/index.ts";
import type { Envelope } from "./jobs.ts";

export type BullmqPackage = typeof Bullmq;

/** One run of a job. A job that is added again after it ended is another run. */
export interface RunOfJob {
  readonly jobId: string;
  /** When the job was added, in milliseconds since the epoch. */
  readonly addedAt: number;
}

/** How a queue is opened. */
export interface QueueSettings {
  /** Approximate number of events that bullmq keeps, where the server lets it choose. Only outside observers read them. */
  readonly eventsKept: number;
  /** Whether commands wait for the server, however long it is unreachable. Default: they fail. */
  readonly isPatient?: boolean | undefined;
}

export interface WorkerSettings extends Omit<WorkerOptions, "connection" | "prefix"> {
  /** Called for each fault of the worker, from its start on. */
  readonly onError: (error: unknown) => void;
}

/**
 * The server that has the queues: BullMQ's on it, and the notes of this package beside them.
 * Owns: connections, waiting and repeating. Does not own: what jobs mean.
 *
 * Invariants
 * 1. Every command ends within `timeoutMs`: with its answer, or with an error of this package. It may be applied twice.
 * 2. Connections of workers wait for the server, however long it is unreachable, until `close`.
 * 3. BullMQ is used as documented; what this package notes has names that BullMQ never uses.
 */
export interface BullmqServer {
  /** `Redis` or `Postgres`, for messages. */
  readonly name: string;
  /** Loads the package `bullmq`. */
  package(): Promise<BullmqPackage>;
  /** Runs a command of a queue. */
  run<T>(command: () => Promise<T>): Promise<T>;
  queue(name: string, settings: QueueSettings): Promise<Queue>;
  /** Resolves to a worker that takes jobs as soon as it can. */
  worker(
    name: string,
    process: (job: BullJob<Envelope>, token?: string) => Promise<void>,
    settings: WorkerSettings,
  ): Promise<Worker<Envelope, void>>;
  /** Returns an active job to the front of its queue. */
  giveBack(job: BullJob<Envelope>, token: string): Promise<void>;
  /** A job's content in the form in which the server can store it. */
  encoded(data: Envelope): unknown;
  /** The content that was stored, by anyone. */
  decoded(data: unknown): unknown;
  /** Converts an error of the server, the connection or bullmq into an error of this package. */
  translated(error: unknown): TroupeError;
  /** Whether a worker's error comes from the server or the connection to it. */
  isOfConnection(error: unknown): boolean;

  /** Adds queues to the list of queues. */
  register(queues: readonly string[]): Promise<void>;
  names(): Promise<string[]>;
  /** Notes that a worker works on the queue for the next `ms` milliseconds, unless `isOver` by then. */
  enter(queue: string, worker: string, ms: number, isOver: () => boolean): Promise<void>;
  leave(queue: string, worker: string): Promise<void>;
  /** How many workers work on the queue. */
  workers(queue: string): Promise<number>;
  /** Notes for `seconds` that a run is to be stopped. */
  askToStop(queue: string, run: RunOfJob, reason: string, seconds: number): Promise<void>;
  /** The reasons for requested stops, by job id. */
  stopsAsked(queue: string, runs: readonly RunOfJob[]): Promise<Map<string, string>>;
  /** Notes the queue of a canary; `at` in milliseconds since the epoch. */
  noteCanary(name: string, at: number): Promise<void>;
  forgetCanary(name: string): Promise<void>;
  /** Some canary queues that were noted for the last time before `until`. */
  oldCanaries(until: number): Promise<string[]>;

  close(): Promise<void>;
}

/** Loads the package `bullmq` on first use. `driver`: the package for the server. */
export async function loadBullmq(driver: string): Promise<BullmqPackage> {
  try {
    return await import("bullmq");
  } catch (error) {
    throw new UnsupportedError(`BullMQ queues need the package "bullmq": npm install bullmq ${driver}`, {
      cause: error,
    });
  }
}

/** The sender's name in error messages. */
export const QUEUES = "the queues";
