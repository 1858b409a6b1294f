import { InvalidInputError, StoreUnavailableError, UnsupportedError } from "../../errors/index.ts";
import type { Queues } from "../../queues/index.ts";
import type { RuntimeOptions } from "../../runtime/index.ts";
import { type CliContext, commandLine } from "../cli-context.ts";
import type { StoreLocation } from "./store-location.ts";

/** The value of --on: the turns run on workers, or in this process. */
type On = "workers" | "here";

export interface WhereOptions {
  /** Default: on workers if there are any and nothing requires this process, else here. */
  readonly on?: On | undefined;
  readonly inspect?: boolean | number | undefined;
  /** Whether to serve Stately's inspector too. */
  readonly stately?: boolean | undefined;
}

/** A job's data for workers. */
export interface ForWorkers {
  /** The job's store. */
  readonly store: StoreLocation;
  /** The options of a `worker` with the job's agents. */
  readonly workerWords: readonly string[];
}

/** The process that runs a job's turns, with remarks for the person. */
export interface Where {
  /** Runtime options of this process; empty if it runs the turns itself. */
  readonly part: Pick<RuntimeOptions, "queues" | "role">;
  /** The queues of the workers; `undefined` if this process runs the turns itself. */
  readonly queues: Queues | undefined;
  readonly remarks: readonly string[];
}

const here: Where = { part: {}, queues: undefined, remarks: [] };

/** Throws `InvalidInputError` for --on workers with a store that workers cannot reach. */
export function assertWhere({ openQueues }: Pick<StoreLocation, "openQueues">, { on }: Pick<WhereOptions, "on">): void {
  if (on !== "workers" || openQueues !== undefined) return;
  throw new InvalidInputError(
    "--on workers requires agents in Redis or Postgres: give --redis URL or --store postgres://…, or set TROUPE_REDIS",
  );
}

/** Throws `InvalidInputError` if --on workers is impossible. */
export async function whereOf(
  context: Pick<CliContext, "invocation">,
  job: ForWorkers,
  { on, inspect }: WhereOptions,
): Promise<Where> {
  const { openQueues } = job.store;
  assertWhere(job.store, { on });
  if (on === "workers" && inspect !== undefined && inspect !== false) {
    throw new InvalidInputError(
      "--inspect shows agents that live in this process; it cannot be combined with --on workers",
    );
  }
  if (openQueues === undefined || on === "here" || (inspect !== undefined && inspect !== false)) return here;
  const queues = await openQueues();
  try {
    const count = await queues.workers();
    if (on === "workers" || count > 0) {
      const remark = count === 0 ? `No worker is running yet. ${workerLine(context, job)}` : countText(count);
      return { part: { queues, role: "client" }, queues, remarks: [remark] };
    }
    await queues.close();
    return { ...here, remarks: ["No worker is running: the turn runs in this process."] };
  } catch (error) {
    await queues.close();
    if (on === "workers") throw error;
    // Without --on workers the queues are optional. An unavailable store reports its own error.
    if (error instanceof UnsupportedError || error instanceof StoreUnavailableError) return here;
    throw error;
  }
}

function countText(count: number): string {
  return `The turn runs on ${count === 1 ? "a worker" : `one of ${count} workers`}.`;
}

/** The command line of a worker with a job's agents. */
export function workerLine({ invocation }: Pick<CliContext, "invocation">, job: ForWorkers): string {
  return `To start one for these agents: ${commandLine(invocation, "worker", [...job.workerWords, ...job.store.words])}`;
}

/** Interval between two checks for workers, in milliseconds. */
export const workerLookMs = 10_000;

interface WorkerWatchOptions {
  readonly queues: Pick<Queues, "workers">;
  /** Whether an event of the job has arrived since it was sent to the workers. */
  readonly isTakenUp: () => boolean;
  /** Name of the root's definition. */
  readonly definitionName: string;
  /** Command line of a worker with that definition. */
  readonly workerLine: string;
  readonly tell: (line: string) => void;
}

/** Warns about a job without progress: there is no worker, or none with its agents. */
export class WorkerWatch {
  readonly #options: WorkerWatchOptions;
  #isNoneTold = false;
  #isUntakenTold = false;
  #looks = 0;

  constructor(options: WorkerWatchOptions) {
    this.#options = options;
  }

  /** Checks at intervals until the returned function is called. */
  start(): () => void {
    const timer = setInterval(() => {
      // If Redis is unavailable, the turn itself reports it.
      this.look().catch(() => {});
    }, workerLookMs);
    timer.unref();
    return () => clearInterval(timer);
  }

  async look(): Promise<void> {
    const { queues, isTakenUp, definitionName, workerLine, tell } = this.#options;
    this.#looks += 1;
    const count = await queues.workers();
    if (count === 0) {
      if (!this.#isNoneTold) tell(`No worker is running; the turn continues when one starts. ${workerLine}`);
      this.#isNoneTold = true;
      return;
    }
    this.#isNoneTold = false;
    if (isTakenUp() || this.#isUntakenTold) return;
    this.#isUntakenTold = true;
    const seconds = (this.#looks * workerLookMs) / 1_000;
    tell(
      `No worker has started the turn for ${seconds} s. All are busy, or do not have "${definitionName}". ${workerLine}`,
    );
  }
}
