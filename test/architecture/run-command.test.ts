import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { runCommand } from "../../scripts/run-command.ts";
import { Watchdog } from "../../scripts/watchdog.ts";

describe("a watched command", () => {
  beforeEach(() => void vi.useFakeTimers());
  afterEach(() => void vi.useRealTimers());

  test("may take any time while it prints", () => {
    const told: string[] = [];
    const watchdog = new Watchdog({ silentMs: 60_000 }, (reason) => told.push(reason));
    for (let minute = 0; minute < 600; minute += 1) {
      vi.advanceTimersByTime(59_999);
      watchdog.heard();
    }
    expect(told).toEqual([]);
    vi.advanceTimersByTime(60_000);
    expect(told).toEqual(["hangs: it printed nothing for 60 s"]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("has a total limit, if one is set, however much it prints", () => {
    const told: string[] = [];
    const watchdog = new Watchdog({ timeoutMs: 90_000, silentMs: 60_000 }, (reason) => told.push(reason));
    vi.advanceTimersByTime(50_000);
    watchdog.heard();
    vi.advanceTimersByTime(40_000);
    expect(told).toEqual(["did not end within 90 s"]);
    expect(vi.getTimerCount()).toBe(0);
  });

  test("is no longer watched once it has ended", () => {
    const told: string[] = [];
    new Watchdog({ timeoutMs: 90_000, silentMs: 60_000 }, (reason) => told.push(reason)).stop();
    expect(vi.getTimerCount()).toBe(0);
    expect(told).toEqual([]);
  });
});

const hanging = `process.stdout.write("begun\\n"); setInterval(() => undefined, 1e6);`;

test.each([
  [{ silentMs: 1_500 }, "hangs: it printed nothing for 1.5 s"],
  [{ timeoutMs: 1_500 }, "did not end within 1.5 s"],
])("a command that hangs is killed, and its failure names the reason: %j", async (limits, reason) => {
  const result = await runCommand("node", ["--eval", hanging], limits);
  expect(result.ok).toBe(false);
  expect(result.output.trimEnd().endsWith(reason), result.output).toBe(true);
});

test("a command that ends by itself keeps its result", async () => {
  const result = await runCommand("node", ["--eval", `console.log("done")`], { silentMs: 60_000 });
  expect(result).toMatchObject({ ok: true, stdout: "done\n", output: "done\n" });
});
