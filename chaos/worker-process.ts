import { tmpdir } from "node:os";
import { join } from "node:path";
import type { FaultPointName } from "./fault-point-names.ts";
import { jsonLinesOf, type RunEnd, runProcess } from "./processes.ts";
import type { WorkerLine, WorkerOrders } from "./worker.ts";

/** Longest life of a worker, in milliseconds. A turn that has not ended then is stuck. */
const WORKER_LIMIT_MS = 120_000;

/** Compile cache: halves the start time of the many short-lived workers. */
const compileCache = join(tmpdir(), "troupe-chaos-compiled");

export interface Fault {
  readonly name: FaultPointName;
  readonly hit: number;
}

export interface WorkerEnd extends RunEnd {
  readonly lines: readonly WorkerLine[];
  /** Whether it died at its fault point. */
  readonly struck: boolean;
}

/** Runs a worker until it exits or dies at the fault. `onLine` is called with each line of output. */
export async function runWorker(
  orders: WorkerOrders,
  fault?: Fault,
  onLine?: (line: WorkerLine) => void,
): Promise<WorkerEnd> {
  const environment = { TROUPE_FAULT: fault ? `${fault.name}:${fault.hit}` : "", NODE_COMPILE_CACHE: compileCache };
  const end = await runProcess("worker.ts", [JSON.stringify(orders)], {
    environment,
    limitMs: WORKER_LIMIT_MS,
    onLine: onLine && ((line) => onLine(JSON.parse(line) as WorkerLine)),
  });
  const struck = fault !== undefined && end.signal === "SIGKILL" && !end.timedOut;
  return { ...end, lines: jsonLinesOf<WorkerLine>(end.stdout), struck };
}

/** Why a worker did not finish as expected; `undefined` if it did. */
export function stuckOf(end: WorkerEnd): string | undefined {
  const said = `${end.stdout}${end.stderr}`.trim().slice(-600);
  if (end.timedOut) return `its turns had not ended after ${WORKER_LIMIT_MS / 1000} s: ${said}`;
  if (end.exitCode !== 0) return `it ended with exit code ${end.exitCode}, signal ${end.signal}: ${said}`;
  return end.stderr === "" ? undefined : `it complained: ${said}`;
}
