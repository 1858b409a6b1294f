import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { Clock } from "../../src/base/index.ts";
import { InvalidInputError } from "../../src/errors/index.ts";

export interface ClockUnderTest {
  readonly clock: Clock;
  /** Advances the time, in milliseconds. */
  advance(ms: number): void;
  /** The number of pending timers. */
  waiting(): number;
  dispose?(): void;
}

async function settled(): Promise<void> {
  for (let turn = 0; turn < 10; turn += 1) await Promise.resolve();
}

/** The contract of every clock adapter. */
export function testClock(name: string, create: () => ClockUnderTest): void {
  describe(`the clock: ${name}`, () => {
    let made: ClockUnderTest;
    let clock: Clock;
    let log: string[];
    beforeEach(() => {
      made = create();
      clock = made.clock;
      log = [];
    });
    afterEach(() => made.dispose?.());

    const note = (text: string) => () => {
      log.push(text);
    };

    it("reports whole milliseconds and advances both times alike", () => {
      const before = [clock.now(), clock.elapsed()] as const;
      made.advance(250);
      expect([clock.now() - before[0], clock.elapsed() - before[1]]).toEqual([250, 250]);
      expect(Number.isSafeInteger(clock.elapsed())).toBe(true);
    });

    it("runs timers and delays in order of their due time, and skips cancelled ones", () => {
      clock.setTimer(clock.now() + 30, note("timer"));
      clock.setDelay(10, note("delay"));
      clock.setDelay(20, note("cancelled"))();
      expect([log, made.waiting() > 0]).toEqual([[], true]);
      made.advance(200);
      expect(log).toEqual(["delay", "timer"]);
    });

    it("refuses times that are not finite numbers", async () => {
      expect(() => clock.setTimer(Number.NaN, note("never"))).toThrow(InvalidInputError);
      expect(() => clock.setDelay(Number.POSITIVE_INFINITY, note("never"))).toThrow(InvalidInputError);
      await expect(clock.sleep(Number.NaN)).rejects.toThrow(InvalidInputError);
      expect(made.waiting()).toBe(0);
    });

    it("sleeps for the given duration and leaves no timer behind", async () => {
      void clock.sleep(100).then(note("awake"));
      made.advance(99);
      await settled();
      expect(log).toEqual([]);
      made.advance(101);
      await settled();
      expect([log, made.waiting()]).toEqual([["awake"], 0]);
    });

    it("does not wake immediately, however short the sleep", async () => {
      void clock.sleep(0).then(note("awake"));
      await settled();
      expect(log).toEqual([]);
      made.advance(1);
      await settled();
      expect(log).toEqual(["awake"]);
    });

    it("rejects with the signal's reason and leaves no timer behind", async () => {
      const alarm = new AbortController();
      const slept = clock.sleep(1_000, alarm.signal);
      const reason = new Error("get up");
      alarm.abort(reason);
      await expect(slept).rejects.toBe(reason);
      expect(made.waiting()).toBe(0);
    });

    it("does not sleep if the signal is already aborted", async () => {
      const reason = new Error("stay awake");
      await expect(clock.sleep(1_000, AbortSignal.abort(reason))).rejects.toBe(reason);
      expect(made.waiting()).toBe(0);
    });

    it("stays resolved if the signal is aborted after the sleep", async () => {
      const alarm = new AbortController();
      const slept = clock.sleep(10, alarm.signal);
      made.advance(110);
      await slept;
      alarm.abort();
      await expect(slept).resolves.toBeUndefined();
    });
  });
}
