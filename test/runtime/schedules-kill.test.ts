import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { fileURLToPath } from "node:url";
import { afterEach, expect, test } from "vitest";
import { StoredSchedules } from "../../src/runtime/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { rows } from "../support/full.ts";

const program = fileURLToPath(new URL("../support/schedule-process.ts", import.meta.url));
const children: ChildProcess[] = [];
const folders: string[] = [];
afterEach(() => {
  for (const child of children.splice(0)) child.kill("SIGKILL");
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true, force: true });
});

const nothing = (): void => undefined;

async function open(file: string, fault = ""): Promise<ChildProcess> {
  const child = spawn(process.execPath, [program, file, fault], { stdio: ["ignore", "pipe", "inherit"] });
  children.push(child);
  await once(child.stdout, "data");
  return child;
}

test.each(
  rows(["schedule.created:1", "schedule.opened:1", "schedule.opened:2", "turn.result:1"], ["schedule.opened:1"]),
)(
  "a process that is killed at %s leaves its time to another one, which opens the turn once",
  { timeout: 60_000 },
  async (fault) => {
    const folder = mkdtempSync(join(tmpdir(), "troupe-kill-"));
    folders.push(folder);
    const file = join(folder, "troupe.db");
    const stores = sqliteStores(file);
    const clock = { now: () => Date.now() };
    const schedules = new StoredSchedules({ stores, tenant: "default", clock, assertOpen: nothing, onNext: nothing });
    const dies = await open(file, fault);
    const death = once(dies, "exit");
    await schedules.set("tick", "desk", { input: "Look.", every: 1_000, ifMissed: "all" });
    expect((await death)[1]).toBe("SIGKILL");
    await open(file);
    await expect.poll(async () => (await schedules.find("tick")).counts.opened, { timeout: 30_000 }).toBeGreaterThan(2);
    await schedules.pause("tick");
    const { runs } = await schedules.find("tick");
    const times = runs.map(({ at }) => at);
    expect(times).toEqual(times.map((_at, index) => (times[0] ?? 0) + index * 1_000));
    const ofTimes = async (): Promise<(string | null)[]> =>
      (await stores.turns({ tenant: "default" }))
        .map(({ key }) => key)
        .toSorted((one, other) => ((one ?? "") < (other ?? "") ? -1 : 1));
    expect(await ofTimes()).toEqual(times.map((at) => `schedule:tick@${new Date(at).toISOString()}`));
    const unfinished = async (): Promise<number> =>
      (await stores.turns({ tenant: "default" })).filter(({ status }) => status !== "completed").length;
    await expect.poll(unfinished, { timeout: 30_000 }).toBe(0);
    await stores.close();
  },
);
