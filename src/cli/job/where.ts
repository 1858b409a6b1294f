import { InvalidInputError, StoreUnavailableError, UnsupportedError } from "../../errors/index.ts";
import type { Queues } from "../../queues/index.ts";
import type { RuntimeOptions } from "../../runtime/index.ts";
import { type CliContext, commandLine } from "../cli-context.ts";
import type { StorePlace } from "./store-place.ts";

/** Who runs the turns of a job, as it was asked for: `workers`, or this process. */
type On = "workers" | "here";

export interface WhereOptions {
  /** Absent: on workers when some are there and nothing needs this process, else here. */
  readonly on?: On | undefined;
  readonly inspect?: boolean | undefined;
}

/** What has to be known of a job to hand it over. */
export interface ForWorkers {
  /** Where it is kept. */
  readonly store: StorePlace;
  /** What a worker has to be told so that it knows the agents of the job. */
  readonly workerWords: readonly string[];
}

/** Who runs the turns of a job, and what a person is told of it. */
export interface Where {
  /** For the runtime of this process: empty where it runs the turns itself. */
  readonly part: Pick<RuntimeOptions, "queues" | "role">;
  /** The queues that workers wait at; undefined where this process runs the turns itself. */
  readonly queues: Queues | undefined;
  readonly remarks: readonly string[];
}

const here: Where = { part: {}, queues: undefined, remarks: [] };

/** Throws `InvalidInputError` where workers are asked for and cannot be. */
export async function whereOf(
  context: Pick<CliContext, "invocation">,
  job: ForWorkers,
  { on, inspect }: WhereOptions,
): Promise<Where> {
  const { openQueues } = job.store;
  if (on === "workers" && openQueues === undefined) {
    throw new InvalidInputError("--on workers takes agents in Redis: give --redis, or set TROUPE_REDIS");
  }
  if (on === "workers" && inspect === true) {
    throw new InvalidInputError("--inspect shows agents that live in this process; it does not go with --on workers");
  }
  if (openQueues === undefined || on === "here" || inspect === true) return here;
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
    // Whoever needs no worker needs none of what it takes to find one; a store that is away is told by itself.
    if (error instanceof UnsupportedError || error instanceof StoreUnavailableError) return here;
    throw error;
  }
}

function countText(count: number): string {
  return `The turn runs on ${count === 1 ? "a worker" : `one of ${count} workers`}.`;
}

/** How a worker is started that knows the agents of a job. */
export function workerLine({ invocation }: Pick<CliContext, "invocation">, job: ForWorkers): string {
  return `One that knows these agents: ${commandLine(invocation, "worker", [...job.workerWords, ...job.store.words])}`;
}

/** How often it is looked whether workers are there, in milliseconds. */
export const workerLookMs = 10_000;

interface WorkerWatchOptions {
  readonly queues: Pick<Queues, "workers">;
  /** Whether anything has come of the job since it was handed over. */
  readonly isTakenUp: () => boolean;
  /** Of the root, as workers know it. */
  readonly definitionName: string;
  /** How a worker is started that knows it. */
  readonly workerLine: string;
  readonly tell: (line: string) => void;
}

/** Says what is wrong where a job waits for workers in vain: none are there, or none that know its agents. */
export class WorkerWatch {
  readonly #options: WorkerWatchOptions;
  #isNoneTold = false;
  #isUntakenTold = false;
  #looks = 0;

  constructor(options: WorkerWatchOptions) {
    this.#options = options;
  }

  /** Looks now and then until the returned function is called. */
  start(): () => void {
    const timer = setInterval(() => {
      // A store that is away is told by those who need it.
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
