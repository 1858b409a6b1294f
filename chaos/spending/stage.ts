import { tmpdir } from "node:os";
import { join } from "node:path";
import { LineReader } from "../line-log.ts";
import { jsonLinesOf, type RunEnd, runProcess, startServer } from "../processes.ts";
import type { GoneLine, SpendingLine } from "./script.ts";
import type { SpendingEnd, SpendingOrders } from "./worker.ts";

/** Longest life of a worker, in milliseconds. A tree that has not ended then is stuck. */
const LIMIT_MS = 180_000;
const compileCache = join(tmpdir(), "troupe-chaos-compiled");

export interface SpendingStage {
  readonly folder: string;
  /** The provider and all its requests. */
  readonly model: string;
  readonly log: LineReader<SpendingLine>;
  /** Clients that left before they got their answer. */
  readonly gone: LineReader<GoneLine>;
}

/** Runs a function with its own provider. */
export async function withProvider<Found>(
  folder: string,
  slowestMs: number,
  run: (stage: SpendingStage) => Promise<Found>,
): Promise<Found> {
  const path = join(folder, "provider.jsonl");
  const server = await startServer("spending/server.ts", [path, String(slowestMs)]);
  try {
    const [log, gone] = [new LineReader<SpendingLine>(path), new LineReader<GoneLine>(`${path}.gone`)];
    return await run({ folder, model: server.address, log, gone });
  } finally {
    await server.stop();
  }
}

export interface WorkerRun extends RunEnd {
  readonly ends: readonly SpendingEnd[];
  /** Whether it died at its fault. */
  readonly struck: boolean;
  /** Why it did not finish; `undefined` if it finished or was killed. */
  readonly stuck: string | undefined;
}

/** Runs a worker until it exits or dies at the fault, given as `name:k`. */
export async function runSpender(orders: SpendingOrders, fault = ""): Promise<WorkerRun> {
  const environment = { TROUPE_FAULT: fault, NODE_COMPILE_CACHE: compileCache };
  const end = await runProcess("spending/worker.ts", [JSON.stringify(orders)], { environment, limitMs: LIMIT_MS });
  const struck = fault !== "" && end.signal === "SIGKILL" && !end.timedOut;
  return { ...end, ends: jsonLinesOf<SpendingEnd>(end.stdout), struck, stuck: struck ? undefined : stuckOf(end) };
}

function stuckOf({ timedOut, exitCode, signal, stdout, stderr }: RunEnd): string | undefined {
  const said = `${stdout}${stderr}`.trim().slice(-600);
  if (timedOut) return `it had not ended after ${LIMIT_MS / 1000} s: ${said}`;
  if (exitCode !== 0) return `it ended with exit code ${exitCode}, signal ${signal}: ${said}`;
  return stderr === "" ? undefined : `it complained: ${said}`;
}
