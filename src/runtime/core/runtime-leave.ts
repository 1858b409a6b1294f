import { TurnInterruptedError } from "../../errors/index.ts";
import type { Clock } from "../../base/index.ts";
import type { DrainReport } from "../doors/drain-options.ts";
import { DEFAULT_SHUTDOWN_MS, type LeftBehind, LeavingTime, warnOfLeft } from "../doors/leaving.ts";

/** How much of a drain is kept for closing, at most, in milliseconds. */
const LONGEST_PARTING_MS = 1_000;

/** What a runtime has to let go of. */
export interface LeavingPlace {
  readonly clock: Clock;
  readonly work: { drain(timeoutMs: number): Promise<Pick<DrainReport, "left">> };
  readonly live: {
    close(time: LeavingTime): Promise<void>;
    readonly leftBehind: readonly LeftBehind[];
  };
  readonly queues: { close(): Promise<void> };
  readonly stores: { close(): Promise<void> };
  /** Begins nothing any more by itself. */
  stop(): void;
  /** Whoever waits here is told that nothing more comes. */
  tell(error: Error): void;
}

/**
 * How a runtime ends.
 * Owns: the order of it, and that it keeps its time. Does not own: what is closed.
 */
export class RuntimeLeave {
  readonly #place: LeavingPlace;
  #shutdown: Promise<readonly LeftBehind[]> | undefined;
  #drained: Promise<DrainReport> | undefined;

  constructor(place: LeavingPlace) {
    this.#place = place;
  }

  get isShutDown(): boolean {
    return this.#shutdown !== undefined;
  }

  /** Gives whom it has left behind. */
  shutdown(timeoutMs = DEFAULT_SHUTDOWN_MS): Promise<readonly LeftBehind[]> {
    this.#shutdown ??= this.#close(new LeavingTime(this.#place.clock, timeoutMs));
    return this.#shutdown;
  }

  drain(timeoutMs: number): Promise<DrainReport> {
    this.#drained ??= this.#drain(timeoutMs);
    return this.#drained;
  }

  async #drain(timeoutMs: number): Promise<DrainReport> {
    const { clock, work } = this.#place;
    const end = clock.elapsed() + timeoutMs;
    const parting = Math.min(LONGEST_PARTING_MS, Math.floor(timeoutMs / 5));
    const { left } = await work.drain(timeoutMs - parting);
    const leftBehind = await this.shutdown(Math.max(0, end - clock.elapsed()));
    return { left, leftBehind };
  }

  async #close(time: LeavingTime): Promise<readonly LeftBehind[]> {
    const { live, queues, stores } = this.#place;
    this.#place.stop();
    await live.close(time);
    this.#place.tell(new TurnInterruptedError("this runtime was shut down; the turn is carried on at the next start"));
    try {
      await time.spend("queues", queues.close());
      await time.spend("stores", stores.close());
      return live.leftBehind;
    } finally {
      warnOfLeft(live.leftBehind);
    }
  }
}
