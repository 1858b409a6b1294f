import type { OuterWindow } from "./limit-names.ts";

/** One window of an account, in milliseconds since the epoch: from `startsAt` up to, and without, `endsAt`. */
export interface OuterPeriod {
  readonly startsAt: number;
  /** `null` if it never ends. */
  readonly endsAt: number | null;
}

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
/** Longer than every day and every month, with any change of the clock. */
const LONGEST_MS = { perDay: 50 * HOUR_MS, perMonth: 34 * 24 * HOUR_MS } as const;

const forever: OuterPeriod = Object.freeze({ startsAt: 0, endsAt: null });

/**
 * The calendar windows of one time zone. Minutes and hours begin at full minutes and hours of UTC, days and months at the first moment that
 * has their date in the time zone, also where a clock is set at midnight.
 * Owns: the last window of each kind, because nearly all questions are about it.
 */
export class Calendar {
  readonly #dates: Intl.DateTimeFormat;
  readonly #last = new Map<OuterWindow, OuterPeriod>();

  /** Throws `RangeError` for an unknown time zone. */
  constructor(timeZone: string) {
    this.#dates = new Intl.DateTimeFormat("en-CA-u-ca-iso8601-nu-latn", {
      timeZone,
      year: "numeric",
      month: "2-digit",
      day: "2-digit",
    });
  }

  periodAt(window: OuterWindow, now: number): OuterPeriod {
    if (window === "total") return forever;
    if (window === "perMinute") return evenPeriod(now, MINUTE_MS);
    if (window === "perHour") return evenPeriod(now, HOUR_MS);
    const last = this.#last.get(window);
    if (last && now >= last.startsAt && now < (last.endsAt ?? 0)) return last;
    const name = this.#nameOf(window, now);
    const isSame = (at: number): boolean => this.#nameOf(window, at) === name;
    const longest = LONGEST_MS[window];
    const period = {
      startsAt: firstOf(now - longest, now, isSame),
      endsAt: firstOf(now, now + longest, (at) => !isSame(at)),
    };
    this.#last.set(window, period);
    return period;
  }

  #nameOf(window: "perDay" | "perMonth", at: number): string {
    const parts = this.#dates.formatToParts(at);
    const wanted = window === "perDay" ? ["year", "month", "day"] : ["year", "month"];
    return wanted.map((type) => parts.find((part) => part.type === type)?.value).join("-");
  }
}

function evenPeriod(now: number, length: number): OuterPeriod {
  const startsAt = Math.floor(now / length) * length;
  return { startsAt, endsAt: startsAt + length };
}

/** The first moment after `from` for which the condition holds; it holds for `to`, and from some moment on. */
function firstOf(from: number, to: number, condition: (at: number) => boolean): number {
  let [before, at] = [from, to];
  while (at - before > 1) {
    const middle = Math.floor((before + at) / 2);
    if (condition(middle)) at = middle;
    else before = middle;
  }
  return at;
}
