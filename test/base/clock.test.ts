import { execFileSync } from "node:child_process";
import { afterEach, beforeEach, describe, expect, it, vi } from "vitest";
import { type Clock, createSystemClock } from "../../src/base/index.ts";
import { InvalidInputError } from "../../src/errors/index.ts";

const start = Date.UTC(2026, 0, 1);
const day = 24 * 60 * 60 * 1000;

describe("the system clock", () => {
  let clock: Clock;
  let log: string[];
  const note = (text: string) => () => {
    log.push(`${text} at ${Date.now() - start}`);
  };

  beforeEach(() => {
    vi.useFakeTimers({ now: start });
    clock = createSystemClock();
    log = [];
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it("calls back on time, by time and then by order of creation (1)", () => {
    clock.setTimer(start + 70, note("c"));
    clock.setTimer(start + 20, note("a"));
    clock.setTimer(start + 20, note("b"));
    vi.advanceTimersByTime(19);
    expect(log).toEqual([]);
    vi.advanceTimersByTime(100);
    expect(log).toEqual(["a at 20", "b at 20", "c at 70"]);
  });

  it("calls back soon for a time in the past, and not synchronously", () => {
    clock.setTimer(start - 5, note("late"));
    expect(log).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(log).toHaveLength(1);
  });

  it("supports waits longer than setTimeout allows", () => {
    clock.setTimer(start + 30 * day, note("month"));
    vi.advanceTimersByTime(1000);
    expect(log).toEqual([]);
    vi.setSystemTime(start + 30 * day - 1000);
    vi.advanceTimersByTime(1000);
    expect(log).toEqual([`month at ${30 * day}`]);
  });

  it("notices within 100 ms that the system clock was set forward", () => {
    clock.setTimer(start + day, note("tomorrow"));
    vi.advanceTimersByTime(1000);
    vi.setSystemTime(start + 2 * day);
    vi.advanceTimersByTime(100);
    expect(log).toHaveLength(1);
  });

  it("a delay is not affected if the system clock is set", () => {
    const begun = clock.elapsed();
    let passed = 0;
    clock.setDelay(1_000, () => {
      passed = clock.elapsed() - begun;
    });
    vi.setSystemTime(start + day);
    vi.advanceTimersByTime(500);
    vi.setSystemTime(start - day);
    vi.advanceTimersByTime(499);
    expect(passed).toBe(0);
    vi.advanceTimersByTime(110);
    expect(passed).toBeGreaterThanOrEqual(1_000);
    expect(passed).toBeLessThanOrEqual(1_100);
  });

  it("does not call back early if the system clock was set back", () => {
    clock.setTimer(start + 500, note("x"));
    vi.advanceTimersByTime(400);
    vi.setSystemTime(start - 400);
    vi.advanceTimersByTime(899);
    expect(log).toEqual([]);
    vi.advanceTimersByTime(1);
    expect(log).toEqual(["x at 500"]);
  });

  it("drops a cancelled timer, and stops ticking when none is left (3)", () => {
    const cancel = clock.setTimer(start + 10, note("cancelled"));
    clock.setTimer(start + 20, note("kept"));
    cancel();
    cancel();
    vi.advanceTimersByTime(30);
    expect(log).toEqual(["kept at 20"]);
    const cancelLast = clock.setTimer(start + day, note("never"));
    cancelLast();
    expect(vi.getTimerCount()).toBe(0);
  });

  it("other timers run even if a callback throws (2)", () => {
    clock.setTimer(start + 10, () => {
      throw new Error("broken callback");
    });
    clock.setTimer(start + 10, note("other"));
    expect(() => vi.advanceTimersByTime(10)).toThrow("broken callback");
    vi.advanceTimersByTime(1);
    expect(log).toHaveLength(1);
  });

  it("other timers run even if a callback always sets a due timer", () => {
    const again = () => {
      log.push("again");
      clock.setTimer(Date.now(), again);
    };
    again();
    setTimeout(note("someone else"), 3);
    vi.advanceTimersByTime(3);
    expect(log).toContain("someone else at 3");
  });

  it.each([Number.NaN, Number.POSITIVE_INFINITY])("refuses to wait for %s", (at) => {
    expect(() => clock.setTimer(at, note("never"))).toThrow(InvalidInputError);
  });
});

it("a pending timer does not keep the process alive", () => {
  const module = new URL("../../src/base/index.ts", import.meta.url).href;
  const program = `import { systemClock } from "${module}"; systemClock.setTimer(Date.now() + 3_600_000, () => {}); console.log("end");`;
  const output = execFileSync(process.execPath, ["--input-type=module", "-e", program], { timeout: 30_000 });
  expect(output.toString()).toBe("end\n");
});
