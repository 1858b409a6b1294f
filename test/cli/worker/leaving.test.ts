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
] as const)("%s asks to leave, and a second one leaves immediately", (signal, exitCode) => {
  const { source, heard } = watched();
  source.emit(signal);
  source.emit(signal);
  expect(heard).toEqual([signal, exitCode]);
});

test("the copies of one signal from a terminal and npm count as one", () => {
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

test("after the end signals are ignored", () => {
  const { source, heard, stop } = watched();
  stop();
  source.emit("SIGTERM");
  expect(heard).toEqual([]);
  expect(source.eventNames()).toEqual([]);
});
