import type { Queues } from "../../queues/index.ts";

/** How often it is looked whether workers are there, in milliseconds. */
export const workerLookMs = 10_000;

export interface WorkerWatchOptions {
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
