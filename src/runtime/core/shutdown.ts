import { type Clock, holdProcess } from "../../base/index.ts";
import { TurnInterruptedError } from "../../errors/index.ts";
import type { DrainReport, LeftBehind } from "../api/runtime-types.ts";

/** Maximum part of a drain's time reserved for closing, in milliseconds. */
const MOST_FOR_CLOSING_MS = 1_000;
/** Maximum part of a shutdown's time reserved for the steps after storing, in milliseconds. */
const MOST_FOR_REST_MS = 2_000;
/** The fraction of the reserved time that is left when a step's time is over. */
const KEPT_AFTER = { store: 1, giveBack: 0.5, queues: 0.25, stores: 0 } as const;
/** Maximum number of agents named in one warning. */
const MOST_NAMED = 20;

export interface ShutdownDependencies {
  readonly clock: Clock;
  readonly work: { drain(timeoutMs: number): Promise<Pick<DrainReport, "left">> };
  readonly live: {
    close(time: LeavingTime): Promise<void>;
    readonly leftBehind: readonly LeftBehind[];
  };
  readonly queues: { close(): Promise<void> };
  readonly stores: { close(): Promise<void> };
  /** Stops timers and jobs, so that nothing new starts. */
  stop(): void;
  /** Rejects all waiters, because no further results come. */
  reject(error: Error): void;
}

/**
 * Ends a runtime.
 * Owns: the order of the steps, and their time. Does not own: the components that are closed.
 */
export class Shutdown {
  readonly #dependencies: ShutdownDependencies;
  #closed: Promise<readonly LeftBehind[]> | undefined;
  #drained: Promise<DrainReport> | undefined;

  constructor(dependencies: ShutdownDependencies) {
    this.#dependencies = dependencies;
  }

  /** Returns the agents that could not be released. */
  close(timeoutMs: number): Promise<readonly LeftBehind[]> {
    this.#closed ??= this.#close(new LeavingTime(this.#dependencies.clock, timeoutMs));
    return this.#closed;
  }

  drain(timeoutMs: number): Promise<DrainReport> {
    this.#drained ??= this.#drain(timeoutMs);
    return this.#drained;
  }

  async #drain(timeoutMs: number): Promise<DrainReport> {
    const { clock, work } = this.#dependencies;
    const end = clock.elapsed() + timeoutMs;
    const forClosing = Math.min(MOST_FOR_CLOSING_MS, Math.floor(timeoutMs / 5));
    const { left } = await work.drain(timeoutMs - forClosing);
    const leftBehind = await this.close(Math.max(0, end - clock.elapsed()));
    return { left, leftBehind };
  }

  async #close(time: LeavingTime): Promise<readonly LeftBehind[]> {
    const { live, queues, stores } = this.#dependencies;
    this.#dependencies.stop();
    await live.close(time);
    this.#dependencies.reject(
      new TurnInterruptedError("this runtime was shut down; the turn continues at the next start"),
    );
    try {
      await time.spend("queues", queues.close());
      await time.spend("stores", stores.close());
      return live.leftBehind;
    } finally {
      warnOfLeft(live.leftBehind);
    }
  }
}

/**
 * The time budget of a shutdown.
 * Owns: how long each step may take. Does not own: the steps.
 *
 * Invariant: a step that exceeds its time continues in the background, and the next one starts.
 */
export class LeavingTime {
  readonly #clock: Clock;
  readonly #end: number;
  readonly #restMs: number;

  constructor(clock: Clock, timeoutMs: number) {
    this.#clock = clock;
    this.#end = clock.elapsed() + timeoutMs;
    this.#restMs = Math.min(MOST_FOR_REST_MS, Math.floor(timeoutMs / 2));
  }

  /** Rejects if the work does; returns false if the work did not end in time. */
  async spend(step: keyof typeof KEPT_AFTER, work: Promise<unknown>): Promise<boolean> {
    const over = new AbortController();
    const left = this.#end - this.#clock.elapsed() - this.#restMs * KEPT_AFTER[step];
    // Work that is already done wins the race, even if no time is left.
    const late = this.#clock.sleep(Math.max(0, left), over.signal).then(() => false);
    const letGo = holdProcess();
    const done = work.then(() => true);
    // The work may fail after its time, when it is not awaited any more.
    done.catch(() => undefined);
    try {
      return await Promise.race([done, late]);
    } finally {
      over.abort();
      letGo();
    }
  }
}

function warnOfLeft(leftBehind: readonly LeftBehind[]): void {
  if (leftBehind.length === 0) return;
  const named = leftBehind.slice(0, MOST_NAMED).map(({ agentId, turnId, reason }) => `${turnId ?? agentId}: ${reason}`);
  const others = leftBehind.length > MOST_NAMED ? `; and ${leftBehind.length - MOST_NAMED} more` : "";
  process.emitWarning(`this runtime has left agents behind: ${named.join("; ")}${others}`, {
    code: "TROUPE_LEFT_BEHIND",
  });
}
