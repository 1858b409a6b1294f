import { existsSync, mkdtempSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { McpOptions } from "troupe/mcp";
import { expect, onTestFinished } from "vitest";
import type { Era } from "./served-desk.ts";

/** A program of `stdio-program.ts`, and its processes. */
export interface StartedPrograms {
  readonly folder: string;
  readonly options: Pick<McpOptions, "command" | "args">;
  /** The pids of all starts so far. */
  readonly starts: () => number[];
  /** The processes of these starts that run now, and their helpers. */
  readonly running: () => number[];
  /** Resolves when none of them runs. */
  readonly ended: () => Promise<void>;
}

export function startedPrograms(era: Era, ...kind: readonly ("stubborn" | "helper")[]): StartedPrograms {
  const folder = mkdtempSync(join(tmpdir(), "troupe-mcp-"));
  const starts = (): number[] =>
    readdirSync(folder).flatMap((file) => (file.startsWith("started-") ? Number(file.slice("started-".length)) : []));
  const running = (): number[] =>
    starts()
      .flatMap((pid) => [pid, Number(readFileSync(join(folder, `started-${pid}`), "utf8"))])
      .filter((pid) => pid > 0 && isRunning(pid));
  onTestFinished(() => {
    for (const pid of running()) process.kill(pid, "SIGKILL");
    rmSync(folder, { recursive: true, force: true });
  });
  return {
    folder,
    options: { command: process.execPath, args: [join(import.meta.dirname, "stdio-program.ts"), era, folder, ...kind] },
    starts,
    running,
    ended: async () => await expect.poll(running, { timeout: 15_000 }).toEqual([]),
  };
}

/** A zombie, which its parent has not read yet, does not run. */
function isRunning(pid: number): boolean {
  const path = `/proc/${pid}/stat`;
  if (!existsSync("/proc/self/stat")) return isKnown(pid);
  try {
    return !/^\d+ \(.*\) [ZX] /s.test(readFileSync(path, "utf8"));
  } catch {
    return false;
  }
}

function isKnown(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch {
    return false;
  }
}
