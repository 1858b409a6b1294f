import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { fileURLToPath } from "node:url";
import { describe, expect, onTestFinished, test } from "vitest";
import { commandEnvironment, sourceCondition } from "../../scripts/run-command.ts";
import { SqliteConnection } from "../../src/stores/sqlite/sqlite-connection.ts";
import { temporaryFile } from "./temporary-file.ts";

const program = fileURLToPath(new URL("synced-turns.ts", import.meta.url));
const calls = "write,pwrite64,fsync,fdatasync";

/** Whether a process on this machine can trace the system calls of another. */
const canTrace = spawnSync("strace", ["-f", "-e", `trace=${calls}`, "true"]).status === 0;

/** For each turn: whether the write-ahead log had unsynced data when its result was returned. */
function unsyncedTurns(durability: "process" | "full"): boolean[] {
  const path = temporaryFile();
  const log = temporaryFile("calls.txt");
  const args = ["-f", "-y", "-e", `trace=${calls}`, "-o", log, process.execPath, program, path, durability];
  const env = commandEnvironment({ NODE_OPTIONS: `--conditions=${sourceCondition}` });
  const { status, stderr } = spawnSync("strace", args, { env, encoding: "utf8" });
  expect(status, stderr).toBe(0);
  const turns: boolean[] = [];
  let isUnsynced = false;
  for (const line of readFileSync(log, "utf8").split("\n")) {
    if (/pwrite64\(.*-wal>/.test(line)) isUnsynced = true;
    if (/(?:fsync|fdatasync)\(.*-wal>/.test(line)) isUnsynced = false;
    if (/write\(1<.*"acknowledged/.test(line)) turns.push(isUnsynced);
  }
  return turns;
}

describe("durability", () => {
  test.each([
    [undefined, 1],
    ["process", 1],
    ["full", 2],
  ] as const)("%s is in force on the connection that writes", (durability, synchronous) => {
    const connection = new SqliteConnection(temporaryFile(), { durability });
    onTestFinished(() => connection.close());
    expect(connection.prepare("PRAGMA synchronous").get()).toEqual({ synchronous });
    expect(connection.prepare("PRAGMA journal_mode").get()).toEqual({ journal_mode: "wal" });
  });

  test.skipIf(!canTrace)(
    "full: each turn is on disk before its result is returned",
    () => {
      expect(unsyncedTurns("full")).toEqual([false, false, false, false, false]);
    },
    60_000,
  );

  test.skipIf(!canTrace)(
    "process: the turn is written to the operating system, and does not wait for the disk",
    () => {
      expect(unsyncedTurns("process")).toEqual([true, true, true, true, true]);
    },
    60_000,
  );
});
