import { spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { hostname } from "node:os";
import { Worker } from "node:worker_threads";
import { describe, expect, it, test } from "vitest";
import { currentProcess } from "../../src/stores/index.ts";
import { isRunning, ProcessProbe, type ProcessView, startTimeOf } from "../../src/stores/rules/processes.ts";

const stores = JSON.stringify(new URL("../../src/stores/index.ts", import.meta.url).href);

test("a process is identified by its id, its pid, its start time and its boot", () => {
  const first = currentProcess("p1");
  const { bootId } = currentProcess("p2");
  const startedAt = expect.any(Number) as number;
  const startTime = startTimeOf(process.pid);
  expect(first).toEqual({ processId: "p1", pid: process.pid, bootId, startTime, host: hostname(), startedAt });
  const script = `import { currentProcess } from ${stores}; process.stdout.write(currentProcess("x").bootId);`;
  const other = spawnSync(process.execPath, ["--input-type=module-typescript", "-e", script], { encoding: "utf8" });
  expect(other.stdout).toBe(first.bootId);
});

test("this process is running, and one that has ended is not", () => {
  expect(isRunning({ pid: process.pid, startTime: startTimeOf(process.pid) })).toBe(true);
  const ended = spawnSync(process.execPath, ["-e", ""]);
  expect(isRunning({ pid: ended.pid, startTime: null })).toBe(false);
});

test("a thread of this process reports it as running", async () => {
  const script = `import { isRunning } from ${stores};
    import { parentPort, workerData } from "node:worker_threads"; parentPort.postMessage(isRunning(workerData));`;
  const worker = new Worker(new URL(`data:text/javascript,${encodeURIComponent(script)}`), {
    workerData: currentProcess("p1"),
  });
  expect(await once(worker, "message")).toEqual([true]);
  await worker.terminate();
});

test.runIf(existsSync("/proc/self/stat"))("a pid that was reused is not the registered process", async () => {
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
});

/** A process as its operating system describes it. */
interface Machine {
  readonly platform?: NodeJS.Platform;
  readonly pid?: number;
  readonly boot?: string | undefined;
  readonly namespace?: string | undefined;
  /** When the process started, in seconds of the monotonic clock. */
  readonly startedAt?: number;
  /** The target of /proc/self; differs from the pid if /proc belongs to another namespace. */
  readonly procSelf?: number;
  /** The lines of /proc/self/mountinfo. */
  readonly mounts?: readonly string[];
  /** Pids in use, with their start times in ticks. */
  readonly others?: Readonly<Record<number, string>>;
}

const BOOT = "c3a8f1cd-3bc0-46f6-bbdd-d8a11c59c06f";
const PROC = "22 27 0:21 / /proc rw - proc proc rw";
const layer = (id: string): string =>
  `27 1 0:30 / / rw - overlay overlay rw,lowerdir=/l,upperdir=/var/lib/docker/overlay2/${id}/diff,workdir=/w`;
const pod = (name: string): string =>
  `60 27 8:1 /kubelet/pods/4f-1/containers/${name}/ab12 /dev/termination-log rw - ext4 /d rw`;

function sightOf(machine: Machine): ProcessProbe {
  const { platform = "linux", pid = 1, startedAt = 1_000, procSelf = pid, mounts = [PROC], others = {} } = machine;
  const boot = "boot" in machine ? machine.boot : BOOT;
  const namespace = "namespace" in machine ? machine.namespace : "pid:[4026532179]";
  const ticks: Readonly<Record<number, string>> = { ...others, [pid]: `${startedAt * 100}` };
  const view: ProcessView = {
    platform,
    pid,
    hostname: "web",
    // Both are read at the same time: without a boot id the boot is identified by the wall clock minus the uptime.
    uptime: { machine: 2_000, process: 2_000 - startedAt, monotonic: 2_000 },
    read: (path) => {
      if (path === "/proc/sys/kernel/random/boot_id") return boot && `${boot}\n`;
      if (path === "/proc/self/mountinfo") return mounts.join("\n");
      const start = ticks[Number(/^\/proc\/(\d+)\/stat$/.exec(path)?.[1])];
      return start && `1 (node (web)) S ${Array.from({ length: 18 }, () => "0").join(" ")} ${start} 0`;
    },
    link: (path) => (path === "/proc/self" ? `${procSelf}` : path === "/proc/self/ns/pid" ? namespace : undefined),
    isPidInUse: (other) => other in ticks,
  };
  return new ProcessProbe(view);
}

/** Whether a process reports another registered one as dead before its lease has expired. */
function isDeadTo(survivor: Machine, { pid = 1, ...registered }: Machine): boolean {
  const [own, other] = [sightOf(survivor), sightOf({ pid, ...registered })];
  return own.bootId === other.bootId && !own.isRunning({ pid, startTime: other.startTimeOf(pid) });
}

describe("a predecessor with the pid of this process", () => {
  const again = { startedAt: 1_003 };
  it.each<[what: string, survivor: Machine, predecessor: Machine]>([
    ["in a namespace whose number was reused", again, {}],
    [
      "in the same container under a new namespace",
      { ...again, namespace: "pid:[7]", mounts: [PROC, layer("a")] },
      { mounts: [PROC, layer("a")] },
    ],
    [
      "in the same container of a pod",
      { ...again, namespace: "pid:[7]", mounts: [PROC, pod("app"), layer("b")] },
      { mounts: [PROC, pod("app"), layer("a")] },
    ],
    ["if /proc belongs to another namespace", { ...again, procSelf: 812 }, { procSelf: 640 }],
    [
      "on a system without /proc",
      { ...again, platform: "darwin", boot: undefined, namespace: undefined, procSelf: 0, mounts: [] },
      { platform: "darwin", boot: undefined, namespace: undefined, procSelf: 0, mounts: [], startedAt: 1_003 - 0.5 },
    ],
  ])("is dead %s", (_what, survivor, predecessor) => {
    expect(isDeadTo(survivor, predecessor)).toBe(true);
  });

  it.each<[what: string, survivor: Machine, other: Machine]>([
    ["it is this process", {}, {}],
    [
      "it is this process, and /proc belongs to another namespace",
      { procSelf: 812 },
      { procSelf: 812, startedAt: 1_000.01 },
    ],
    ["it is in another namespace", { ...again, namespace: "pid:[7]" }, {}],
    [
      "it is in another container with the same host name",
      { ...again, namespace: "pid:[7]", mounts: [PROC, layer("b")] },
      { mounts: [PROC, layer("a")] },
    ],
    [
      "it is in another container of the pod",
      { ...again, namespace: "pid:[7]", mounts: [PROC, pod("sidecar")] },
      { mounts: [PROC, pod("app")] },
    ],
    [
      "it is in a namespace within the same container",
      { ...again, namespace: "pid:[7]", mounts: [PROC, PROC, layer("a")] },
      { mounts: [PROC, layer("a")] },
    ],
    ["it is on another machine with the same host name", again, { boot: "another" }],
    ["the boot id cannot be read", { ...again, boot: undefined }, { boot: undefined }],
    ["the namespace cannot be read", { ...again, namespace: undefined }, { namespace: undefined }],
  ])("is not dead when %s", (_what, survivor, other) => {
    expect(isDeadTo(survivor, other)).toBe(false);
  });
});

describe("another process of the same namespace", () => {
  it.each<[what: string, survivor: Machine, other: Machine, isDead: boolean]>([
    ["whose pid is not in use is dead", {}, { pid: 7 }, true],
    ["whose pid was reused is dead", { others: { 7: "100400" } }, { pid: 7 }, true],
    ["that is running is alive", { others: { 7: "100000" } }, { pid: 7 }, false],
    [
      "whose pid is in use and whose start time is unreadable is alive",
      { procSelf: 812, others: { 7: "3" } },
      { pid: 7, procSelf: 640 },
      false,
    ],
  ])("%s", (_what, survivor, other, isDead) => {
    expect(isDeadTo(survivor, other)).toBe(isDead);
  });
});
