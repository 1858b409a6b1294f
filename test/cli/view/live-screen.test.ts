import { PassThrough } from "node:stream";
import { describe, expect, test } from "vitest";
import { idleRedrawMs, limitRedraws, redrawMs } from "../../../src/cli/view/live-reporter.ts";
import { LiveScreen, type TerminalStream } from "../../../src/cli/view/live-screen.ts";
import { createFakeClock } from "../../../src/testing/index.ts";

const escape = "\u001B";
const sequences = new RegExp(`${escape}\\[\\??(\\d*)([A-Za-z])|\\r|\\n|[^${escape}\\r\\n]+`, "g");

/** What a terminal shows after all output: just enough of one to draw over lines. */
function terminal() {
  const screen: string[] = [""];
  let row = 0;
  let raw = "";
  const write = (text: string): boolean => {
    raw += text;
    for (const [piece, count, command] of text.matchAll(sequences)) {
      if (command === "A") row -= Number(count);
      else if (command === "B") row += Number(count);
      else if (command === "K") screen[row] = "";
      else if (command === "J") screen.splice(row, Number.POSITIVE_INFINITY, "");
      else if (piece === "\n") {
        row += 1;
        screen[row] ??= "";
      } else if (command === undefined && piece !== "\r") screen[row] += piece;
    }
    return true;
  };
  const stream: TerminalStream & { columns: number } = Object.assign(new PassThrough(), {
    columns: 80,
    rows: 24,
    write,
  });
  /** Makes it narrower: longer lines are wrapped, and the cursor moves down with them. */
  const narrow = (columns: number): void => {
    const broken = screen.map((line) => line.match(new RegExp(`.{1,${columns}}`, "g")) ?? [""]);
    row = broken.slice(0, row).flat().length;
    screen.splice(0, screen.length, ...broken.flat());
    stream.columns = columns;
  };
  return { stream, narrow, lines: () => screen.join("\n").trimEnd().split("\n"), raw: () => raw };
}

describe("the screen", () => {
  test("draws over its previous frame, also if the new one is shorter", () => {
    const { stream, lines } = terminal();
    stream.write("before\n");
    const screen = new LiveScreen(stream);
    screen.draw(["one", "two", "three"]);
    screen.draw(["uno"]);
    expect(lines()).toEqual(["before", "uno"]);
  });

  test.each([
    ["drawn over", (screen: LiveScreen) => screen.draw(["short"]), ["before", "short"]],
    ["closed", (screen: LiveScreen) => screen.close(), ["before"]],
  ] as const)("leaves no rows behind if it is %s after the terminal became narrower", (_what, change, expected) => {
    const { stream, narrow, lines } = terminal();
    stream.write("before\n");
    const screen = new LiveScreen(stream);
    screen.draw(["a line of thirty-one characters", "", "two"]);
    narrow(10);
    expect(lines()).toHaveLength(7);
    change(screen);
    expect(lines()).toEqual(expected);
  });

  test("leaves printed lines above itself, and the last frame above a question", () => {
    const { stream, lines } = terminal();
    const screen = new LiveScreen(stream);
    screen.draw(["one", "two"]);
    screen.print(["address"]);
    screen.draw(["three"]);
    screen.suspend(["four"]);
    screen.draw(["late"]);
    stream.write("Approve? y\n");
    screen.resume();
    screen.draw(["five"]);
    expect(lines()).toEqual(["address", "four", "Approve? y", "five"]);
  });

  test("restores the terminal once", () => {
    const { stream, lines, raw } = terminal();
    stream.write("before\n");
    const screen = new LiveScreen(stream);
    screen.draw(["one", "two"]);
    screen.close();
    screen.close();
    screen.draw(["late"]);
    expect(lines()).toEqual(["before"]);
    expect(raw().split("\u001B[?25h")).toHaveLength(2);
    expect(raw().indexOf("\u001B[?25l")).toBeLessThan(raw().indexOf("\u001B[?25h"));
  });

  test("writes nothing if it never drew", () => {
    const { stream, raw } = terminal();
    new LiveScreen(stream).close();
    expect(raw()).toBe("");
  });
});

describe("redrawing", () => {
  test("redraws at most ten times a second, however many events there are", () => {
    const clock = createFakeClock();
    let draws = 0;
    const limit = limitRedraws(clock, () => {
      draws += 1;
    });
    for (let millisecond = 0; millisecond < 10_000; millisecond += 1) {
      limit.request();
      clock.advance(1);
    }
    expect(draws).toBeGreaterThan(98);
    // One at the start, then ten a second.
    expect(draws).toBeLessThanOrEqual(101);
  });

  test("shows the last change soon, keeps redrawing without events, and ends when it is stopped", () => {
    const clock = createFakeClock();
    const drawn: number[] = [];
    const start = clock.now();
    const limit = limitRedraws(clock, () => drawn.push(clock.now() - start));
    limit.request();
    clock.advance(10);
    limit.request();
    clock.advance(redrawMs + 2 * idleRedrawMs);
    expect(drawn).toEqual([0, redrawMs, redrawMs + idleRedrawMs, redrawMs + 2 * idleRedrawMs]);
    limit.stop();
    limit.request();
    clock.advance(10_000);
    expect(drawn).toHaveLength(4);
    expect(clock.pendingTimers).toBe(0);
  });

  test("a clock that is set back does not stop redrawing", () => {
    const clock = createFakeClock();
    let draws = 0;
    const limit = limitRedraws(clock, () => {
      draws += 1;
    });
    limit.request();
    clock.advance(1);
    clock.jump(-3_600_000);
    limit.request();
    clock.advance(redrawMs);
    expect(draws).toBe(2);
  });
});
