import type { BusyTime, Span } from "./timeline.ts";

/** What a timeline is drawn along: places on it are numbers from 0 to `length`. */
export interface Axis {
  readonly length: number;
  /** Idle time that is folded; empty where there is none. */
  readonly gaps: readonly Gap[];
  placeOf(time: number): number;
  /** The inverse: the first time at that place. */
  timeAt(place: number): number;
}

/** Time in which nothing worked, folded to a short piece of the axis. */
export interface Gap {
  readonly from: number;
  readonly to: number;
  /** Its place on the axis, and how much of the axis it takes. */
  readonly place: number;
  readonly width: number;
}

/** What a `TimeAxis` covers. */
export interface AxisTime {
  /** Milliseconds since the epoch. */
  readonly start: number;
  readonly end: number;
  /** The run goes on: idle time at its end grows until it takes half of the axis. Default: the run is over. */
  readonly isOpen?: boolean;
}

/** Time with idle gaps folded. Places on it are milliseconds of work; a gap takes its `width`. */
export class TimeAxis implements Axis {
  readonly gaps: readonly Gap[];
  readonly length: number;
  readonly #start: number;

  /** `busy`: in the order of time, none in another. */
  constructor(busy: readonly BusyTime[], { start, end, isOpen = false }: AxisTime) {
    this.#start = start;
    const work = busy.reduce((sum, one) => sum + Math.max(0, Math.min(one.end, end) - one.start), 0);
    const least = Math.max(1_000, work * 0.08);
    const gaps: Gap[] = [];
    let last = start;
    let folded = 0;
    const foldTo = (to: number, width: number): void => {
      if (to - last <= Math.max(least, width)) return;
      gaps.push({ from: last, to, place: last - start - folded, width });
      folded += to - last - width;
    };
    for (const one of busy) {
      foldTo(one.start, least / 4);
      last = Math.max(last, Math.min(one.end, end));
    }
    foldTo(end, isOpen ? Math.max(least, last - start - folded) : least / 4);
    this.gaps = gaps;
    this.length = Math.max(1, end - start - folded);
  }

  placeOf(time: number): number {
    let place = time - this.#start;
    for (const { from, to, width } of this.gaps) {
      if (time <= from) break;
      const inside = Math.min(time, to) - from;
      place -= inside - (inside / (to - from)) * width;
    }
    return place;
  }

  timeAt(place: number): number {
    let time = this.#start + place;
    for (const gap of this.gaps) {
      if (place <= gap.place) break;
      const inside = Math.min(place - gap.place, gap.width);
      time += (inside / gap.width) * (gap.to - gap.from) - inside;
    }
    return time;
  }
}

/**
 * What was spent: a model call is as wide as its tokens or its cost, spread evenly over the time that it took. What costs
 * nothing has no width.
 */
export class AmountAxis implements Axis {
  readonly gaps: readonly Gap[] = [];
  readonly length: number;
  /** Times at which the rate of spending changes, and what was spent until then. */
  readonly #times: number[] = [];
  readonly #spent: number[] = [];

  constructor(spans: Iterable<Span>, amountOf: (span: Span) => number) {
    const changes: { readonly at: number; readonly rate: number }[] = [];
    for (const span of spans) {
      const amount = amountOf(span);
      if (amount <= 0 || !Number.isFinite(span.end)) continue;
      const rate = amount / Math.max(1, span.end - span.start);
      changes.push({ at: span.start, rate }, { at: Math.max(span.end, span.start + 1), rate: -rate });
    }
    changes.sort((one, other) => one.at - other.at);
    let rate = 0;
    let spent = 0;
    for (const [index, change] of changes.entries()) {
      const before = changes[index - 1];
      if (before) spent += rate * (change.at - before.at);
      rate += change.rate;
      this.#times.push(change.at);
      this.#spent.push(spent);
    }
    this.length = Math.max(1, spent);
  }

  placeOf(time: number): number {
    return between(this.#times, this.#spent, time);
  }

  timeAt(place: number): number {
    return between(this.#spent, this.#times, place);
  }
}

/** The value at `at` on the line through points whose `xs` ascend. */
function between(xs: readonly number[], ys: readonly number[], at: number): number {
  let low = 0;
  let high = xs.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if ((xs[middle] ?? 0) < at) low = middle + 1;
    else high = middle;
  }
  const [x0, x1] = [xs[low - 1], xs[low]];
  const [y0, y1] = [ys[low - 1], ys[low]];
  if (x0 === undefined || y0 === undefined) return ys[0] ?? 0;
  if (x1 === undefined || y1 === undefined) return y0;
  return x1 === x0 ? y1 : y0 + ((at - x0) / (x1 - x0)) * (y1 - y0);
}
