import { expect, test } from "vitest";
import { recordConsole } from "./console-recorder.ts";

function createConsole(printed: unknown[]): Parameters<typeof recordConsole>[0] {
  const print = (...values: unknown[]): void => void printed.push(...values);
  return {
    log: print,
    info: print,
    warn: print,
    error: print,
    debug: print,
    trace: print,
    dir: print,
    table: print,
    assert: print,
  };
}

test("records printed lines once, and prints nothing", () => {
  const shown: unknown[] = [];
  const target = createConsole(shown);
  const recorder = recordConsole(target);
  target.log("a", 1);
  target.assert(true, "fine");
  target.assert(false, "wrong");
  expect(recorder.take()).toEqual(["console.log: a 1", "console.assert: false wrong"]);
  expect(recorder.take()).toEqual([]);
  expect(shown).toEqual([]);
});

test("restores the console", () => {
  const shown: unknown[] = [];
  const target = createConsole(shown);
  recordConsole(target).restore();
  target.warn("shown");
  expect(shown).toEqual(["shown"]);
});
