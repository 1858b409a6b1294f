import type { BusyTime, Span } from "./timeline.ts";

/** The axis of a timeline. Positions on it are numbers from 0 to `length`. */
export interface Axis {
  readonly length: number;
  /** Folded idle times. */
  readonly gaps: readonly Gap[];
  /** The range of a span; `undefined` if it has no width. An open span lasts until `now`. */
  rangeOf(span: Span, now: number): Range | undefined;
  /** The position of a time; `undefined` on an axis of amounts. */
  positionOf(time: number): number | undefined;
  /** The inverse: the first time at that position. */
  timeAt(place: number): number | undefined;
}

export interface Range {
  readonly from: number;
  readonly to: number;
}

/** Idle time, folded to a short piece of the axis. */
export interface Gap {
  readonly from: number;
  readonly to: number;
  /** Its position and width on the axis. */
  readonly place: number;
  readonly width: number;
}

/** The time range of a `TimeAxis`. */
export interface AxisTime {
  /** Milliseconds since the epoch. */
  readonly start: number;
  readonly end: number;
  /** Whether the run still works. Trailing idle time then grows up to half of the axis. Default false. */
  readonly isOpen?: boolean;
}

/** Time with idle gaps folded. Positions are milliseconds of work; a gap occupies its `width`. */
export class TimeAxis implements Axis {
  readonly gaps: readonly Gap[];
  readonly length: number;
  readonly #start: number;

  /** `busy`: sorted by time, without overlaps. */
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

  rangeOf(span: Span, now: number): Range {
    return { from: this.positionOf(span.start), to: this.positionOf(Math.min(span.end, now)) };
  }

  positionOf(time: number): number {
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
 * Amounts that each agent spent: its calls one after the other, each as wide as its amount. Spans without an amount have
 * no width, even while other agents spend.
 */
export class AmountAxis implements Axis {
  readonly gaps: readonly Gap[] = [];
  readonly length: number;
  readonly #ranges = new Map<Span, Range>();

  /** `rows`: the spans of each agent. */
  constructor(rows: Iterable<readonly Span[]>, amountOf: (span: Span) => number) {
    let longest = 0;
    for (const spans of rows) {
      let place = 0;
      for (const span of spans) {
        const amount = amountOf(span);
        if (amount <= 0) continue;
        this.#ranges.set(span, { from: place, to: place + amount });
        place += amount;
      }
      longest = Math.max(longest, place);
    }
    this.length = Math.max(1, longest);
  }

  rangeOf(span: Span): Range | undefined {
    return this.#ranges.get(span);
  }

  positionOf(): undefined {
    return undefined;
  }

  timeAt(): undefined {
    return undefined;
  }
}
