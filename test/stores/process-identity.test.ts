import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { expect, test } from "vitest";
import { currentProcess } from "../../src/stores/index.ts";
import { isRunning, startTimeOf } from "../../src/stores/rules/processes.ts";

test("a process is told by its id, its pid and the boot it belongs to", () => {
  const first = currentProcess("p1");
  expect(first).toEqual({ processId: "p1", pid: process.pid, bootId: currentProcess("p2").bootId });
  const script = `import { currentProcess } from ${JSON.stringify(new URL("../../src/stores/index.ts", import.meta.url).href)};
    process.stdout.write(currentProcess("x").bootId);`;
  const other = spawnSync(process.execPath, ["--input-type=module-typescript", "-e", script], { encoding: "utf8" });
  expect(other.stdout).toBe(first.bootId);
});

test("this process runs, and one that has ended does not", () => {
  expect(isRunning({ pid: process.pid, startTime: startTimeOf(process.pid) })).toBe(true);
  const ended = spawnSync(process.execPath, ["-e", ""]);
  expect(isRunning({ pid: ended.pid, startTime: null })).toBe(false);
});

test.runIf(existsSync("/proc/self/stat"))(
  "a pid that another process has got since is not the one that was registered",
  async () => {
    const child = spawn(process.execPath, ["-e", "setInterval(() => {}, 1000); console.log('up')"], {
      stdio: ["ignore", "pipe", "ignore"],
    });
    await once(child.stdout, "data");
    const pid = child.pid ?? 0;
    const startTime = startTimeOf(pid);
    expect(startTime).toMatch(/^\d+$/);
    expect(isRunning({ pid, startTime })).toBe(true);
    expect(isRunning({ pid, startTime: `${startTime}1` })).toBe(false);
    child.kill("SIGKILL");
    await once(child, "exit");
    expect(isRunning({ pid, startTime })).toBe(false);
  },
);
