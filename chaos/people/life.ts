import { tmpdir } from "node:os";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { createRuntime } from "../../src/index.ts";
import { jsonLinesOf, type RunEnd, runProcess } from "../processes.ts";
import { decideAsPlanned, nextDecision } from "./decide.ts";
import type { PeopleLine, PeopleOrders, PlannedDecision } from "./orders.ts";
import { storesAt } from "../stores-at.ts";

/** Longest life of a process, in milliseconds. A turn that has not ended then is stuck. */
const LIFE_LIMIT_MS = 30_000;

/** Compile cache: halves the start time of the many short-lived processes. */
const compileCache = join(tmpdir(), "troupe-chaos-compiled");

export interface LifeEnd extends RunEnd {
  readonly lines: readonly PeopleLine[];
  /** Whether it died of its fault, or as ordered when its turn waited. */
  readonly died: boolean;
}

/**
 * Runs one process until it exits or dies. If it does not decide itself, this process decides, while it listens or after it
 * has died, with `gapMs` between decisions.
 */
export async function runLife(orders: PeopleOrders, gapMs: number): Promise<LifeEnd> {
  let deciding: Promise<void> | undefined;
  const decide = (): Promise<void> => decideFromOutside(orders, gapMs);
  const end = await runProcess("people/worker.ts", [JSON.stringify(orders)], {
    environment: { NODE_COMPILE_CACHE: compileCache },
    limitMs: LIFE_LIMIT_MS,
    onLine: (line) => {
      const isWaiting = line.includes('"waiting"');
      if (!isWaiting || orders.whenWaiting !== "listens" || deciding) return;
      deciding = decide();
      deciding.catch(() => undefined);
    },
  });
  await deciding;
  const lines = jsonLinesOf<PeopleLine>(end.stdout);
  const died = end.signal === "SIGKILL" && !end.timedOut;
  if (died && orders.whenWaiting === "dies" && lines.some(({ type }) => type === "waiting")) await decide();
  return { ...end, lines, died };
}

/** Decides in a process that cannot run the agent. Each decision uses the request as read just before. */
async function decideFromOutside({ store, agentId, decisions }: PeopleOrders, gapMs: number): Promise<void> {
  const runtime = await createRuntime({ agents: [], stores: storesAt(store) });
  try {
    for (let left: readonly PlannedDecision[] = decisions; left.length > 0; ) {
      const next = nextDecision(left, await runtime.requests({ agentId }));
      if (!next) return;
      await decideAsPlanned(runtime, next.request, next.decision);
      left = left.filter((one) => one !== next.decision);
      if (left.length > 0) await delay(gapMs);
    }
  } finally {
    await runtime.shutdown();
  }
}

/** Why a process did not exit as expected; `undefined` if it did. */
export function stuckOf({ timedOut, exitCode, signal, stdout, stderr }: LifeEnd): string | undefined {
  const said = `${stdout}${stderr}`.trim().slice(-600);
  if (timedOut) return `its turn had not ended after ${LIFE_LIMIT_MS / 1000} s: ${said}`;
  if (exitCode !== 0) return `it ended with exit code ${exitCode}, signal ${signal}: ${said}`;
  return stderr === "" ? undefined : `it complained: ${said}`;
}
