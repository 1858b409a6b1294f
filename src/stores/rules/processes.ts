import { readFileSync, readlinkSync } from "node:fs";
import { hostname, uptime } from "node:os";
import type { ProcessIdentity } from "./outcomes.ts";
import type { ProcessRow, Tables } from "./tables.ts";

/** Describes this process to the stores; `processId` must be unique among all processes that ever used the store. */
export function currentProcess(processId: string): ProcessIdentity {
  return { processId, pid: process.pid, bootId: currentBootId() };
}

/**
 * How long a process is remembered after its last heartbeat. Of agents held by a forgotten process only the last commit
 * is known, and a process that was suspended for so long must register again.
 */
const PROCESS_KEPT_MS = 24 * 60 * 60 * 1000;

export function registerProcess(tables: Tables, identity: ProcessIdentity, now: number, elapsed: number): number {
  const isOfThisBoot = identity.bootId === currentBootId();
  const startTime = isOfThisBoot ? startTimeOf(identity.pid) : null;
  const known = tables.processes();
  const clockOffset = clockOffsetFor(known, identity, now, elapsed);
  const steady = elapsed + clockOffset;
  tables.putProcess({ ...identityOf(identity), startTime, heartbeatAt: steady, clockOffset });
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

export function identityOf({ processId, pid, bootId }: ProcessIdentity): ProcessIdentity {
  return { processId, pid, bootId };
}

/**
 * The offset that turns a new process' `elapsed()` into steady time. Processes of one boot share their offset, so that
 * they always agree, even if the clock was set between their starts. The first process of a boot starts with the clock
 * as it is set, but never before a time that was stored already: steady time does not go back over a restart.
 */
export function clockOffsetFor(
  known: readonly ProcessRow[],
  { bootId }: ProcessIdentity,
  now: number,
  elapsed: number,
): number {
  const latest = known.reduce((last, { heartbeatAt }) => Math.max(last, heartbeatAt), 0);
  const ofBoot = known.filter((row) => kernelOf(row.bootId) === kernelOf(bootId));
  const shared = ofBoot.find(({ clockOffset }) => isSameClock(ofBoot, clockOffset, elapsed))?.clockOffset;
  return shared ?? Math.max(now, latest) - elapsed;
}

/** If a process of this boot gave its heartbeat in the future, it uses another clock, such as an injected one. */
function isSameClock(rows: readonly ProcessRow[], clockOffset: number, elapsed: number): boolean {
  return rows.every((row) => row.clockOffset !== clockOffset || row.heartbeatAt <= elapsed + clockOffset);
}

/** The boot id without the namespace: everything on one boot shares one monotonic clock. */
export function kernelOf(id: string): string {
  return id.split("/", 1)[0] ?? id;
}

let bootId: string | undefined;

/**
 * Identifies one boot of a machine and one namespace of process ids: whether a process is running can only be checked
 * within the same boot id. If the system gives no boot id, it is made of host name and boot time; two processes that
 * round it differently wait for each other's heartbeat to expire, which is slower but safe.
 */
function currentBootId(): string {
  bootId ??= readBootId();
  return bootId;
}

function readBootId(): string {
  const boot = textOrNothing(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim());
  if (boot === undefined) return `${hostname()}:${Math.round((Date.now() - uptime() * 1000) / 60_000)}`;
  // Containers of one machine share its boot id, but not each other's process ids.
  return `${boot}/${textOrNothing(() => readlinkSync("/proc/self/ns/pid")) ?? hostname()}`;
}

/** When a process was started, in the system's own unit; null if the system does not tell. */
export function startTimeOf(pid: number): string | null {
  return statOf(pid)?.startTime ?? null;
}

/**
 * Whether a process of this boot is still running: its pid is in use by the registered process, which has not ended.
 */
export function isRunning(registered: { readonly pid: number; readonly startTime: string | null }): boolean {
  if (!isPidInUse(registered.pid)) return false;
  const stat = statOf(registered.pid);
  if (!stat) return true;
  const hasEnded = stat.state === "Z" || stat.state === "X";
  return !hasEnded && (registered.startTime === null || registered.startTime === stat.startTime);
}

function statOf(pid: number): { readonly state: string; readonly startTime: string } | undefined {
  const line = textOrNothing(() => readFileSync(`/proc/${pid}/stat`, "utf8"));
  // The name in brackets may hold anything; the state follows it, and the start time is the 20th field from there.
  const fields = line?.slice(line.lastIndexOf(")") + 2).split(" ");
  const [state, startTime] = [fields?.[0], fields?.[19]];
  return state === undefined || startTime === undefined ? undefined : { state, startTime };
}

function isPidInUse(pid: number): boolean {
  try {
    return process.kill(pid, 0);
  } catch (error) {
    // Not being allowed to signal it means that it exists.
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
