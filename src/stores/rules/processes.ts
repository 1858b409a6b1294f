import { randomUUID } from "node:crypto";
import { readFileSync, readlinkSync } from "node:fs";
import { hostname, uptime } from "node:os";
import type { ProcessIdentity, RegisteredProcess } from "./outcomes.ts";
import type { Tables } from "./tables.ts";

/** Describes this process to the stores; `processId` must be unique among all processes that ever used the store. */
export function currentProcess(processId: string): ProcessIdentity {
  const { pid } = process;
  const { bootId } = sight;
  const startedAt = Math.round(performance.timeOrigin);
  return { processId, pid, bootId, startTime: sight.startTimeOf(pid), host: hostname(), startedAt };
}

/**
 * How long a process is remembered after its last heartbeat, in milliseconds. If a process was forgotten, only the last commits of its
 * agents are known, and if it was only suspended it must register again.
 */
const PROCESS_KEPT_MS = 24 * 60 * 60 * 1000;

export function registerProcess(tables: Tables, identity: ProcessIdentity, now: number, elapsed: number): number {
  const known = tables.processes();
  const clockOffset = clockOffsetFor(known, identity, now, elapsed);
  const steady = elapsed + clockOffset;
  tables.putProcess({
    ...identity,
    startTime: identity.startTime ?? null,
    heartbeatAt: steady,
    clockOffset,
  });
  for (const { processId, heartbeatAt } of known) {
    const isForgotten = processId !== identity.processId && heartbeatAt < steady - PROCESS_KEPT_MS;
    if (isForgotten) tables.removeProcess(processId);
  }
  return clockOffset;
}

export function heartbeat(tables: Tables, processId: string, steady: number): boolean {
  const row = tables.process(processId);
  if (row) tables.putProcess({ ...row, heartbeatAt: steady });
  return row !== undefined;
}

export function identityOf({ processId, pid, bootId, startTime }: ProcessIdentity): ProcessIdentity {
  return { processId, pid, bootId, ...(typeof startTime === "string" ? { startTime } : {}) };
}

/**
 * The offset that converts a new process's `elapsed()` to steady time. Processes of one boot share their offset, so that they always
 * agree, even if the clock was set between their starts. The first process of a boot starts with the clock's current time, but never
 * before a stored time: steady time does not go back over a restart.
 */
export function clockOffsetFor(
  known: readonly RegisteredProcess[],
  { bootId }: Pick<ProcessIdentity, "bootId">,
  now: number,
  elapsed: number,
): number {
  const latest = known.reduce((last, { heartbeatAt }) => Math.max(last, heartbeatAt), 0);
  const ofBoot = known.filter((row) => kernelOf(row.bootId) === kernelOf(bootId));
  const shared = ofBoot.find(({ clockOffset }) => isSameClock(ofBoot, clockOffset, elapsed))?.clockOffset;
  return shared ?? Math.max(now, latest) - elapsed;
}

/** A process of this boot with a heartbeat in the future uses another clock, such as an injected one. */
function isSameClock(rows: readonly RegisteredProcess[], clockOffset: number, elapsed: number): boolean {
  return rows.every((row) => row.clockOffset !== clockOffset || row.heartbeatAt <= elapsed + clockOffset);
}

/** The state of a process as seen by one that only reads the stores. */
export interface ProcessSigns {
  /** Whether it runs; `null` if it is on another machine or in another container, where only its heartbeat is visible. */
  readonly isRunning: boolean | null;
  /** Time since its last heartbeat, in milliseconds. */
  readonly silentMs: number;
  /** Its start time in milliseconds since the epoch; `null` if unknown. */
  readonly startedAt: number | null;
}

/** Checks a registered process without being registered. `now` and `elapsed` are those of the caller's clock. */
export function signsOf(
  { processId, ...identity }: ProcessIdentity,
  known: readonly RegisteredProcess[],
  { now, elapsed }: { readonly now: number; readonly elapsed: number },
): ProcessSigns {
  const { bootId } = sight;
  const steady = elapsed + clockOffsetFor(known, { bootId }, now, elapsed);
  const row = known.find((one) => one.processId === processId);
  const isOfBoot = identity.bootId === bootId;
  return {
    isRunning: isOfBoot ? isRunning(identity) : null,
    silentMs: row === undefined ? 0 : Math.max(0, steady - row.heartbeatAt),
    startedAt: row?.startedAt ?? (isOfBoot ? startOf(identity, now) : null),
  };
}

/** Converts the start time from `/proc`, which is in hundredths of a second since the boot of the machine. */
function startOf({ startTime = null }: Pick<ProcessIdentity, "startTime">, now: number): number | null {
  if (startTime === null || startTime.startsWith(MONOTONIC)) return null;
  return Math.round(now - uptime() * 1_000 + Number(startTime) * 10);
}

/** The boot id without the namespace: all processes of one boot share one monotonic clock. */
export function kernelOf(id: string): string {
  return id.split("/", 1)[0] ?? id;
}

/** The system's information about visible processes; tests provide their own. */
export interface ProcessView {
  readonly platform: NodeJS.Platform;
  /** The pid of this process. */
  readonly pid: number;
  readonly hostname: string;
  /** How long the machine and this process have been running, in seconds, by one monotonic clock. */
  readonly uptime: { readonly machine: number; readonly process: number; readonly monotonic: number };
  /** The text of a file, or the target of a link; `undefined` if reading fails. */
  readonly read: (path: string) => string | undefined;
  readonly link: (path: string) => string | undefined;
  readonly isPidInUse: (pid: number) => boolean;
}

const system: ProcessView = {
  platform: process.platform,
  pid: process.pid,
  hostname: hostname(),
  get uptime() {
    const [seconds, nanoseconds] = process.hrtime();
    return { machine: uptime(), process: process.uptime(), monotonic: seconds + nanoseconds / 1e9 };
  },
  read: (path) => textOrNothing(() => readFileSync(path, "utf8")),
  link: (path) => textOrNothing(() => readlinkSync(path)),
  isPidInUse,
};

/**
 * Determines from one process which others share its process ids, and which of those are running.
 *
 * Invariants
 * 1. A living process is never considered dead: if two processes may have the same pid in different namespaces, or the namespace cannot
 *    be read, their boot ids differ and pids prove nothing.
 * 2. If the boot id is the same, a process with this process's pid that started at another time is dead: a restarted container gives its
 *    main process the same pid, often 1.
 */
export class ProcessProbe {
  readonly #view: ProcessView;
  /** Identifies one boot of a machine and one pid namespace: whether a process is running can only be checked within the same boot id. */
  readonly bootId: string;
  /** Start time of this process. */
  readonly #ownStart: string;
  /** Whether `/proc` shows the processes of this namespace. */
  readonly #hasProc: boolean;

  constructor(view: ProcessView) {
    this.#view = view;
    this.#hasProc = view.link("/proc/self") === String(view.pid);
    const { process: since, monotonic } = view.uptime;
    this.#ownStart = this.#stat(view.pid)?.startTime ?? `${MONOTONIC}${Math.round((monotonic - since) * 100)}`;
    this.bootId = bootIdOf(view, this.#hasProc);
  }

  /** Start time of a process, in a system-specific unit; `null` if reading fails. */
  startTimeOf(pid: number): string | null {
    return pid === this.#view.pid ? this.#ownStart : (this.#stat(pid)?.startTime ?? null);
  }

  /** Whether a process of this boot id is still running: its pid is in use by a process with the same start time. */
  isRunning({ pid, startTime = null }: Pick<ProcessIdentity, "pid" | "startTime">): boolean {
    if (pid === this.#view.pid) return startTime === null || isSameStart(startTime, this.#ownStart);
    if (!this.#view.isPidInUse(pid)) return false;
    const stat = this.#stat(pid);
    if (!stat) return true;
    const hasEnded = stat.state === "Z" || stat.state === "X";
    const isUnknown = startTime === null || startTime.startsWith(MONOTONIC);
    return !hasEnded && (isUnknown || startTime === stat.startTime);
  }

  #stat(pid: number): { readonly state: string; readonly startTime: string } | undefined {
    const line = this.#hasProc ? this.#view.read(`/proc/${pid}/stat`) : undefined;
    // The name in brackets may contain anything; the state follows it, and the start time is the 20th field from there.
    const fields = line?.slice(line.lastIndexOf(")") + 2).split(" ");
    const [state, startTime] = [fields?.[0], fields?.[19]];
    return state === undefined || startTime === undefined ? undefined : { state, startTime };
  }
}

/** Prefix of a start time in hundredths of a second of the monotonic clock, for systems without it in `/proc`. */
const MONOTONIC = "m";
/** Maximum difference between two readings of the start time of one process, in hundredths of a second. */
const START_TOLERANCE = 2;

function isSameStart(one: string, other: string): boolean {
  if (!one.startsWith(MONOTONIC) || !other.startsWith(MONOTONIC)) return one === other;
  return Math.abs(Number(one.slice(1)) - Number(other.slice(1))) <= START_TOLERANCE;
}

function bootIdOf(view: ProcessView, hasProc: boolean): string {
  const boot = view.read("/proc/sys/kernel/random/boot_id")?.trim();
  if (view.platform !== "linux") {
    // There are no pid namespaces. Two processes that round the boot time differently wait for each other's heartbeat to expire, which is
    // slower but safe.
    return `${view.hostname}:${Math.round((Date.now() / 1000 - view.uptime.machine) / 60)}`;
  }
  const namespace = (hasProc ? containerOf(view) : undefined) ?? view.link("/proc/self/ns/pid");
  // Pids that may belong to another namespace prove nothing, so such a process shares its boot id with no other.
  if (boot === undefined || namespace === undefined) return `${boot ?? view.hostname}/unknown:${randomUUID()}`;
  return `${boot}/${namespace}`;
}

/**
 * Identifies the container of this process, if it has one pid namespace, which each start replaces: by the writable layer of its root,
 * which a container keeps across restarts and does not share; in Kubernetes by the pod and the name of the container. `undefined` outside
 * of containers, and if a namespace was created within the container, which shows in a second mount of `/proc`.
 */
function containerOf({ read }: ProcessView): string | undefined {
  const mounts = (read("/proc/self/mountinfo") ?? "").split("\n").map((line) => line.split(" "));
  if (mounts.filter(([, , , , at]) => at === "/proc").length !== 1) return undefined;
  for (const [, , , from = ""] of mounts) {
    const [, pod, name] = /\/pods\/([\w-]+)\/containers\/([^/]+)\//.exec(from) ?? [];
    if (pod !== undefined && name !== undefined) return `pod:${pod}:${name}`;
  }
  const layer = mounts.find(([, , , , at]) => at === "/")?.join(" ");
  const upper = /[ ,]upperdir=([^, ]+)/.exec(layer ?? "")?.[1];
  return upper === undefined ? undefined : `container:${upper.replaceAll("/", ":")}`;
}

const sight = new ProcessProbe(system);

/** Start time of a process, in a system-specific unit; `null` if reading fails. */
export function startTimeOf(pid: number): string | null {
  return sight.startTimeOf(pid);
}

/** Whether a process of this boot is still running. */
export function isRunning(registered: Pick<ProcessIdentity, "pid" | "startTime">): boolean {
  return sight.isRunning(registered);
}

function isPidInUse(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // EPERM means that the process exists but may not be signalled.
    return error instanceof Error && "code" in error && error.code === "EPERM";
  }
}

function textOrNothing(read: () => string): string | undefined {
  try {
    return read();
  } catch {
    return undefined;
  }
}
