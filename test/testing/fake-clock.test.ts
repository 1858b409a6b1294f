import { describe, expect, it } from "vitest";
import { InvalidInputError, InvariantError } from "../../src/errors/index.ts";
import { createFakeClock } from "../../src/testing/index.ts";

describe("the fake clock", () => {
  it("stands still until it is moved", () => {
    const clock = createFakeClock(1000);
    expect([clock.now(), clock.now()]).toEqual([1000, 1000]);
    clock.advance(50);
    expect(clock.now()).toBe(1050);
  });

  it("runs timers in order, each at its own time, including those set during the move", () => {
    const clock = createFakeClock(0);
    const log: string[] = [];
    const note = (text: string) => () => {
      log.push(`${text} at ${clock.now()}`);
    };
    clock.setTimer(30, note("c"));
    clock.setTimer(10, () => {
      note("a")();
      clock.setTimer(20, note("b"));
      clock.setTimer(99, note("later"));
    });
    clock.advance(50);
    expect(log).toEqual(["a at 10", "b at 20", "c at 30"]);
    expect([clock.now(), clock.pendingTimers, clock.nextTimerAt()]).toEqual([50, 1, 99]);
  });

  it("runs overdue timers at the new time after a jump forward, and no timer after a jump back", () => {
    const clock = createFakeClock(1000);
    const times: number[] = [];
    clock.setTimer(2000, () => times.push(clock.now()));
    clock.jump(-500);
    clock.advance(1000);
    expect([times, clock.now()]).toEqual([[], 1500]);
    clock.jump(5000);
    expect(times).toEqual([6500]);
  });

  it("jumps without elapsed time: measured time and delays do not change", () => {
    const clock = createFakeClock(1000);
    const ran: number[] = [];
    clock.setDelay(100, () => ran.push(clock.elapsed()));
    clock.jump(5000);
    expect([clock.now(), clock.elapsed(), ran]).toEqual([6000, 1000, []]);
    clock.jump(-9000);
    clock.advance(99);
    expect([clock.pendingTimers, clock.nextTimerAt()]).toEqual([1, -2900]);
    clock.advance(1);
    expect([clock.now(), ran]).toEqual([-2900, [1100]]);
    expect(() => clock.setDelay(Number.NaN, () => {})).toThrow(InvalidInputError);
  });

  it("runs a timer for a past time at the next move, not at once, and no cancelled one", () => {
    const clock = createFakeClock(1000);
    const ran: string[] = [];
    clock.setTimer(1, () => ran.push("past"));
    const cancel = clock.setTimer(1005, () => ran.push("cancelled"));
    cancel();
    expect(ran).toEqual([]);
    clock.advance(0);
    clock.advance(10);
    expect([ran, clock.now()]).toEqual([["past"], 1010]);
  });

  it("refuses an invalid time, and stops a timer that sets itself endlessly", () => {
    const clock = createFakeClock();
    expect(() => clock.advance(-1)).toThrow(InvalidInputError);
    expect(() => clock.jump(Number.NaN)).toThrow(InvalidInputError);
    expect(() => clock.setTimer(Number.NaN, () => {})).toThrow(InvalidInputError);
    const again = () => {
      clock.setTimer(clock.now(), again);
    };
    again();
    expect(() => clock.advance(1)).toThrow(InvariantError);
  });
});
