import { readFileSync, readlinkSync } from "node:fs";
import { hostname, uptime } from "node:os";
import type { ProcessIdentity } from "./outcomes.ts";
import type { ProcessRow, Tables } from "./tables.ts";

/** This process as the stores know it; `processId` must be unique among all processes that ever used the store. */
export function currentProcess(processId: string): ProcessIdentity {
  return { processId, pid: process.pid, bootId: currentBootId() };
}

/** The machine's boot alone, whatever the namespace: all of it shares one steady clock. */
export function kernelOf(id: string): string {
  return id.split("/", 1)[0] ?? id;
}

let bootId: string | undefined;

/**
 * Tells one boot of one machine from another, and one namespace of process ids from another: only within the same boot
 * id can a process be asked whether it runs. Where the system gives no boot id it is made of host name and boot time; two
 * processes that round that differently wait for each other's heartbeat to expire, which is slower but safe.
 */
export function currentBootId(): string {
  bootId ??= readBootId();
  return bootId;
}

function readBootId(): string {
  const boot = textOrNothing(() => readFileSync("/proc/sys/kernel/random/boot_id", "utf8").trim());
  if (boot === undefined) return `${hostname()}:${Math.round((Date.now() - uptime() * 1000) / 60_000)}`;
  // Containers of one machine share its boot id, but not each other's process ids.
  return `${boot}/${textOrNothing(() => readlinkSync("/proc/self/ns/pid")) ?? hostname()}`;
}

/** When a process was started, in the system's own unit; null where the system does not tell. */
export function startTimeOf(pid: number): string | null {
  return statOf(pid)?.startTime ?? null;
}

/** Whether a process of this boot still runs: its id is in use, by the process that was registered, and it has not ended. */
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
    // Not allowed to signal it: it is there.
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

/**
 * What makes steady time of a new process' `elapsed()`. Processes of one boot share their offset, so that they agree at
 * every moment, whatever became of the clock between their starts. The first of a boot begins with the clock as it is set,
 * but never before a time that was noted already: steady time does not go back over a restart.
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

/** A clock by which a process of this boot gave its sign in the future is another one: an injected clock, say. */
function isSameClock(rows: readonly ProcessRow[], clockOffset: number, elapsed: number): boolean {
  return rows.every((row) => row.clockOffset !== clockOffset || row.heartbeatAt <= elapsed + clockOffset);
}

/**
 * How long a process is remembered after its last sign of life. Whoever takes up what a forgotten one held knows only of
 * its last commit, and one that was stopped for so long has to register again.
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
