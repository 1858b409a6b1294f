import type { Clock } from "../../base/index.ts";
import type { Timer } from "../../state/index.ts";
import { type ForeignWrites, isBySteadyTime, type Stores } from "../../stores/index.ts";

/** Longest time between two looks at the store: another process may have set a timer and died. */
const LOOK_AGAIN_MS = 5_000;
/** Shortest time between two looks that nobody has asked for. */
const NOT_BEFORE_MS = 250;
const TIMERS_AT_A_TIME = 1_000;

/**
 * Fires stored timers that are due: whoever is alive does it (design, Timers).
 *
 * 1. It looks at the store again at least every 5 s by the steady time, however the clock is set, and when told to.
 * 2. A look that comes too early does no harm; the store says what is due.
 */
export class Alarms {
  readonly #stores: Stores;
  readonly #clock: Clock;
  readonly #onDue: (timer: Timer) => Promise<readonly Timer[]>;
  /** The next look: by the clock as it is set, and by the steady time. */
  readonly #armed = { now: alarmOff(), steady: alarmOff() };
  #isLooking = false;
  #isLookWanted = false;
  #closed = false;

  /** `onDue` gives timers that it has set. */
  constructor(stores: Stores, clock: Clock, onDue: (timer: Timer) => Promise<readonly Timer[]>) {
    this.#stores = stores;
    this.#clock = clock;
    this.#onDue = onDue;
  }

  async start(): Promise<void> {
    await this.#armNext(0);
  }

  note(timers: readonly Timer[]): void {
    for (const timer of timers) {
      if (isBySteadyTime(timer)) this.#armSteady(timer.dueAt);
      else this.#armNow(timer.dueAt);
    }
  }

  /** Others may have set timers; of those that are named it is not known which clock they are meant by. */
  heard(writes: ForeignWrites): void {
    if (writes === "any") return this.look();
    for (const { timerAt } of writes) {
      if (timerAt === null) continue;
      this.#armNow(timerAt);
      this.#armSteady(timerAt);
    }
  }

  /** Somebody else may have set timers, or made some due. */
  look(): void {
    if (this.#closed) return;
    this.#isLookWanted = true;
    if (this.#isLooking) return;
    this.#isLooking = true;
    this.#lookWhileWanted()
      .catch((error: unknown) => this.#report(error))
      .finally(() => {
        this.#isLooking = false;
      });
  }

  close(): void {
    this.#closed = true;
    this.#armed.now.cancel();
    this.#armed.steady.cancel();
  }

  #armNow(at: number): void {
    if (this.#closed || at >= this.#armed.now.at) return;
    this.#armed.now.cancel();
    this.#armed.now = { at, cancel: this.#clock.setTimer(at, () => this.#onAlarm("now")) };
  }

  #armSteady(at: number): void {
    if (this.#closed || at >= this.#armed.steady.at) return;
    this.#armed.steady.cancel();
    const left = Math.max(0, at - this.#clock.elapsed());
    this.#armed.steady = { at, cancel: this.#clock.setDelay(left, () => this.#onAlarm("steady")) };
  }

  #onAlarm(which: "now" | "steady"): void {
    this.#armed[which] = alarmOff();
    this.look();
  }

  async #lookWhileWanted(): Promise<void> {
    try {
      while (this.#isLookWanted && !this.#closed) {
        this.#isLookWanted = false;
        const due = await this.#stores.dueTimers(this.#clock.now(), TIMERS_AT_A_TIME, this.#clock.elapsed());
        // Each on its own: one that waits for its agent to be taken up must not keep the others waiting.
        const outcomes = await Promise.allSettled(due.map((timer) => this.#onDue(timer)));
        for (const outcome of outcomes) {
          if (outcome.status === "rejected") this.#report(outcome.reason);
          else this.note(outcome.value);
        }
      }
    } finally {
      // One that stays due is another owner's: it fires it itself.
      await this.#armNext(NOT_BEFORE_MS);
    }
  }

  /** The next time may be meant by either clock: whichever shows it first. */
  async #armNext(notBeforeMs: number): Promise<void> {
    const { now, steady } = { now: this.#clock.now(), steady: this.#clock.elapsed() };
    this.#armSteady(steady + LOOK_AGAIN_MS);
    const next = await this.#stores.nextTimerAt();
    if (next === undefined) return;
    this.#armNow(Math.max(next, now + notBeforeMs));
    this.#armSteady(Math.max(next, steady + notBeforeMs));
  }

  #report(error: unknown): void {
    if (!this.#closed) process.emitWarning(`timers could not be read: ${String(error)}`);
  }
}

interface Armed {
  readonly at: number;
  readonly cancel: () => void;
}

function alarmOff(): Armed {
  return { at: Number.POSITIVE_INFINITY, cancel: () => undefined };
}
