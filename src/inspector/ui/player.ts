import { type ReadonlySignal, signal } from "@preact/signals";
import type { TimeAxis } from "../run-model/axis.ts";
import { isFailure } from "../run-model/event-rows.ts";
import type { RunLog } from "../run-model/run-log.ts";

export const speeds = [1, 2, 5, 10, 30, 100] as const;

/** The run to play, and the moment that all views show. */
interface Played {
  readonly log: RunLog;
  readonly axis: ReadonlySignal<TimeAxis>;
  readonly pinned: ReadonlySignal<number | null>;
  pin(count: number): void;
  goLive(): void;
}

/** Plays the run with idle time folded, or moves the moment by one event or step. */
export class Player {
  readonly isPlaying = signal(false);
  readonly speed = signal<(typeof speeds)[number]>(1);
  readonly #run: Played;
  #frame = 0;

  constructor(run: Played) {
    this.#run = run;
  }

  stepEvent(by: number): void {
    this.pause();
    const { pinned, log } = this.#run;
    this.#run.pin((pinned.peek() ?? log.length) + by);
  }

  /** Goes to the previous or next model call, of one agent or of all. */
  stepStep(direction: 1 | -1, agent: number): void {
    this.pause();
    const { pinned, log } = this.#run;
    const { first, length } = log;
    let index = (pinned.peek() ?? length) - 1 + direction;
    while (index >= first && index < length) {
      const isOfAgent = agent < 0 || log.agentOf(index) === agent;
      if (isOfAgent && log.entry(index)?.type === "model.requested") break;
      index += direction;
    }
    this.#run.pin(index + 1);
  }

  /** Goes to the next failure, and from the last to the first. Returns its index; -1 if there is none. */
  stepFailure(): number {
    const { pinned, log } = this.#run;
    const { first, length } = log;
    const count = length - first;
    const from = (pinned.peek() ?? first) - first;
    for (let step = 0; step < count; step += 1) {
      const place = first + ((from + step) % count);
      const entry = log.entry(place);
      if (!entry || !isFailure(entry)) continue;
      this.pause();
      this.#run.pin(place + 1);
      return place;
    }
    return -1;
  }

  play(): void {
    const run = this.#run;
    const { log } = run;
    const axis = run.axis.peek();
    let count = run.pinned.peek() ?? log.length;
    if (count >= log.length) count = log.first;
    let place = count === log.first ? 0 : axis.positionOf(log.timeOf(count - 1));
    let before = performance.now();
    run.pin(count);
    this.isPlaying.value = true;
    const tick = (now: number): void => {
      place += (now - before) * this.speed.peek();
      before = now;
      const next = Math.max(count, log.countUntil(axis.timeAt(place)));
      if (next !== count) run.pin(next);
      count = next;
      if (place >= axis.length) run.goLive();
      else this.#frame = requestAnimationFrame(tick);
    };
    this.#frame = requestAnimationFrame(tick);
  }

  pause(): void {
    if (!this.isPlaying.peek()) return;
    cancelAnimationFrame(this.#frame);
    this.isPlaying.value = false;
  }
}
