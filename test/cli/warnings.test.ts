import { EventEmitter } from "node:events";
import { expect, test } from "vitest";
import { tellWarnings, type WarningSource } from "../../src/cli/failure.ts";

function warning(message: string, more: object = {}): Error {
  return Object.assign(new Error(message), { name: "Warning" }, more);
}

function experimental(feature: string): Error {
  const message = `${feature} is an experimental feature and might change at any time`;
  return warning(message, { name: "ExperimentalWarning" });
}

test("a warning is one line, and is not repeated for a minute; warnings of other types are printed by Node", () => {
  const source = new EventEmitter() as EventEmitter & WarningSource;
  const [lines, left]: [string[], Error[]] = [[], []];
  let now = 0;
  source.on("warning", (one: Error) => left.push(one));
  tellWarnings(
    source,
    (line) => lines.push(line),
    () => now,
  );
  const experiment = experimental("The Fetch API");
  const deprecation = warning("old", { name: "DeprecationWarning", code: "DEP0001" });
  source.emit("warning", warning("Redis keeps no log.\n  Set it.", { code: "TROUPE_REDIS_DURABILITY" }));
  source.emit("warning", warning("the heartbeat could not be written"));
  source.emit("warning", deprecation);
  source.emit("warning", experiment);
  for (const feature of ["SQLite", "Type Stripping"]) source.emit("warning", experimental(feature));
  now = 59_999;
  source.emit("warning", warning("the heartbeat could not be written"));
  now = 60_000;
  source.emit("warning", warning("the heartbeat could not be written"));
  expect(lines).toEqual([
    "troupe: warning: Redis keeps no log. Set it.",
    "troupe: warning: the heartbeat could not be written",
    "troupe: warning: the heartbeat could not be written",
  ]);
  expect(left).toEqual([deprecation, experiment]);
});
