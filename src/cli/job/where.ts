import { InvalidInputError, StoreUnavailableError, UnsupportedError } from "../../errors/index.ts";
import type { Queues } from "../../queues/index.ts";
import type { RuntimeOptions } from "../../runtime/index.ts";
import { type CliContext, commandLine } from "../cli-context.ts";
import type { StoreLocation } from "./store-location.ts";

/** The value of --on: workers run the turns of a job, or this process does. */
type On = "workers" | "here";

export interface WhereOptions {
  /** Default: on workers if some are there and nothing needs this process, else here. */
  readonly on?: On | undefined;
  readonly inspect?: boolean | number | undefined;
  /** Whether Stately's inspector is served too. */
  readonly stately?: boolean | undefined;
}

/** The part of a job that is needed to hand it to workers. */
export interface ForWorkers {
  /** Its store. */
  readonly store: StoreLocation;
  /** The options of a `worker` that knows the agents of the job. */
  readonly workerWords: readonly string[];
}

/** The process that runs the turns of a job, and remarks on it for the person. */
export interface Where {
  /** Options of the runtime of this process; empty if it runs the turns itself. */
  readonly part: Pick<RuntimeOptions, "queues" | "role">;
  /** The queues of the workers; undefined if this process runs the turns itself. */
  readonly queues: Queues | undefined;
  readonly remarks: readonly string[];
}

const here: Where = { part: {}, queues: undefined, remarks: [] };

/** Throws `InvalidInputError` for --on workers on a store that no worker reaches. */
export function assertWhere({ openQueues }: Pick<StoreLocation, "openQueues">, { on }: Pick<WhereOptions, "on">): void {
  if (on !== "workers" || openQueues !== undefined) return;
  throw new InvalidInputError("--on workers takes agents in Redis: give --redis, or set TROUPE_REDIS");
}

/** Throws `InvalidInputError` when --on workers cannot be done. */
export async function whereOf(
  context: Pick<CliContext, "invocation">,
  job: ForWorkers,
  { on, inspect }: WhereOptions,
): Promise<Where> {
  const { openQueues } = job.store;
  assertWhere(job.store, { on });
  if (on === "workers" && inspect !== undefined && inspect !== false) {
    throw new InvalidInputError("--inspect shows agents that live in this process; it does not go with --on workers");
  }
  if (openQueues === undefined || on === "here" || (inspect !== undefined && inspect !== false)) return here;
  const queues = await openQueues();
  try {
    const count = await queues.workers();
    if (on === "workers" || count > 0) {
      const remark = count === 0 ? `No worker is there yet. ${workerLine(context, job)}` : countText(count);
      return { part: { queues, role: "client" }, queues, remarks: [remark] };
    }
    await queues.close();
    return { ...here, remarks: ["No worker is there: the turn runs in this process."] };
  } catch (error) {
    await queues.close();
    if (on === "workers") throw error;
    // Without --on workers the queues are not needed. If the store is away, it reports that itself.
    if (error instanceof UnsupportedError || error instanceof StoreUnavailableError) return here;
    throw error;
  }
}

function countText(count: number): string {
  return `The turn runs on ${count === 1 ? "a worker" : `one of ${count} workers`}.`;
}

/** The command line of a worker that knows the agents of a job. */
export function workerLine({ invocation }: Pick<CliContext, "invocation">, job: ForWorkers): string {
  return `One that knows these agents: ${commandLine(invocation, "worker", [...job.workerWords, ...job.store.words])}`;
}

/** Interval between two looks for workers, in milliseconds. */
export const workerLookMs = 10_000;

interface WorkerWatchOptions {
  readonly queues: Pick<Queues, "workers">;
  /** True once an event of the job has arrived since it was handed over. */
  readonly isTakenUp: () => boolean;
  /** Name of the root's definition. */
  readonly definitionName: string;
  /** Command line of a worker that knows it. */
  readonly workerLine: string;
  readonly tell: (line: string) => void;
}

/** Warns when a job waits in vain: no worker is there, or none that knows its agents. */
export class WorkerWatch {
  readonly #options: WorkerWatchOptions;
  #isNoneTold = false;
  #isUntakenTold = false;
  #looks = 0;

  constructor(options: WorkerWatchOptions) {
    this.#options = options;
  }

  /** Looks at intervals until the returned function is called. */
  start(): () => void {
    const timer = setInterval(() => {
      // If Redis is away, the turn itself reports that.
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
      if (!this.#isNoneTold) tell(`No worker is there; the turn goes on when one is. ${workerLine}`);
      this.#isNoneTold = true;
      return;
    }
    this.#isNoneTold = false;
    if (isTakenUp() || this.#isUntakenTold) return;
    this.#isUntakenTold = true;
    const seconds = (this.#looks * workerLookMs) / 1_000;
    tell(
      `No worker has taken it up for ${seconds} s. Those that are there are busy, or do not know "${definitionName}". ${workerLine}`,
    );
  }
}
