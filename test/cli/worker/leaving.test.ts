import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { copyWithinMs, watchLeaving } from "../../../src/cli/job/interrupts.ts";

function watched(isForwarded = false) {
  const source = new EventEmitter();
  const heard: (string | number)[] = [];
  let now = 0;
  const stop = watchLeaving(
    source,
    { leave: (name) => heard.push(name), leaveAtOnce: (code) => heard.push(code) },
    { now: () => now, isForwarded },
  );
  return { source, heard, stop, later: (ms: number) => (now += ms) };
}

test.each([
  ["SIGTERM", 143],
  ["SIGINT", 130],
  ["SIGHUP", 129],
] as const)("%s asks to leave, and once more to leave at once", (signal, exitCode) => {
  const { source, heard } = watched();
  source.emit(signal);
  source.emit(signal);
  expect(heard).toEqual([signal, exitCode]);
});

test("what a terminal and npm send at the same moment is one signal", () => {
  const { source, heard, later } = watched(true);
  source.emit("SIGINT");
  later(copyWithinMs - 1);
  source.emit("SIGINT");
  expect(heard).toEqual(["SIGINT"]);
  source.emit("SIGINT");
  expect(heard).toEqual(["SIGINT", 130]);
});

test("a second signal of another kind counts too", () => {
  const { source, heard, later } = watched();
  source.emit("SIGINT");
  later(5_000);
  source.emit("SIGTERM");
  expect(heard).toEqual(["SIGINT", 143]);
});

test("afterwards signals are none of its business", () => {
  const { source, heard, stop } = watched();
  stop();
  source.emit("SIGTERM");
  expect(heard).toEqual([]);
  expect(source.eventNames()).toEqual([]);
});
