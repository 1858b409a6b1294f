import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { witnessViolations } from "../checks/witness-checks.ts";
import { evidenceOf } from "../evidence.ts";
import type { FaultPointName } from "../fault-point-names.ts";
import { auditEnd, auditSurvivor, type Snapshot, type Stage, snapshot } from "../faults/f2-round.ts";
import type { Attempt } from "../ledger/effect-ledger.ts";
import { readLines } from "../line-log.ts";
import { signal } from "../processes.ts";
import { steadyNow, type WitnessLine } from "../witness.ts";
import { runWorker, stuckOf } from "../worker-process.ts";
import type { WorkerLine, WorkerOrders } from "../worker.ts";

/** A short lease, so that many stalls can be tried. Processes send three heartbeats per lease. */
export const LEASE_MS = 2_000;

export interface StallPlan {
  readonly name: string;
  /** The owner's stall. */
  readonly point: FaultPointName;
  readonly hit: number;
  readonly leases: number;
  /** Whether it was stopped with SIGSTOP or its event loop was blocked. */
  readonly how: "stopped" | "blocked";
}

export interface StallResult {
  readonly hasStalled: boolean;
  readonly turns: number;
  readonly completed: number;
  /** Number of refused commits of the stalled process. */
  readonly staleRefused: number;
  /** Milliseconds from the stall until another process owned the root. */
  readonly takenOverMs: number | undefined;
  readonly violations: readonly string[];
}

interface Stalled {
  readonly pid: number;
  readonly at: number;
  readonly before: Snapshot;
}

/**
 * The owner of a tree stalls for longer than its lease. Two other processes, one agent by agent and one root by root, take
 * the tree over and continue its work. Then the stalled process resumes as if it still owned the tree.
 */
export async function runStall(stage: Stage & { readonly folder: string }, plan: StallPlan): Promise<StallResult> {
  const store = stage.ground.locationOf(plan.name);
  const witnesses = ["owner", "starter", "recoverer"].map((who) => join(stage.folder, `${plan.name}-${who}.jsonl`));
  const [ownLog, ...otherLogs] = witnesses;
  const stallMs = plan.leases * LEASE_MS;
  const common = { store, ledger: stage.ledger.address, model: stage.model.address, agentIds: [plan.name] };
  const ordersOf = (witness: string | undefined, recovers: boolean): WorkerOrders => ({
    ...common,
    recovers,
    counts: false,
    leaseMs: LEASE_MS,
    witness,
    insists: true,
  });
  const blockedMs = plan.how === "blocked" ? stallMs : null;
  const stall = { name: plan.point, hit: plan.hit, blockedMs };
  const told = Promise.withResolvers<Extract<WorkerLine, { type: "stalled" }>>();
  const owner = runWorker({ ...ordersOf(ownLog, false), stall }, undefined, (line) => {
    if (line.type === "stalled") told.resolve(line);
  });
  const first = await Promise.race([told.promise, owner]);
  let stalled: Stalled | undefined;
  const others: Promise<Awaited<typeof owner>>[] = [];
  if ("pid" in first) {
    stalled = { pid: first.pid, at: first.at, before: await snapshot(stage, store) };
    others.push(...otherLogs.map((log, index) => runWorker(ordersOf(log, index > 0))));
    await delay(Math.max(0, first.at + stallMs - Date.now()));
    if (plan.how === "stopped") signal(first.pid, "SIGCONT");
  }
  const ends = await Promise.all([owner, ...others]);
  const violations = ends.flatMap((end) => stuckOf(end) ?? []);
  const lines = witnesses.flatMap((path) => readLines<WitnessLine>(path));
  const trees = await evidenceOf(store);
  const agents = trees.flatMap((tree) => tree.agents);
  const isLate = ({ pid, at }: Attempt): boolean => pid === stalled?.pid && at > stalled.at;
  if (stalled) violations.push(...auditSurvivor(stage, stalled.before, trees));
  violations.push(...trees.flatMap((tree) => auditEnd(stage, tree, isLate)), ...witnessViolations(agents, lines));
  const turnEnds = agents.flatMap(({ entries }) => entries.filter(({ type }) => type === "turn.ended"));
  return {
    hasStalled: stalled !== undefined,
    turns: Math.max(1, turnEnds.length),
    completed: turnEnds.filter((entry) => entry.type === "turn.ended" && entry.outcome === "completed").length,
    staleRefused: lines.filter(({ type, pid }) => type === "stale" && pid === stalled?.pid).length,
    takenOverMs: stalled && takeoverOf(lines, plan.name, stalled),
    violations: violations.map((text) => `${plan.name} ${plan.point}:${plan.hit}, ${plan.how}: ${text}`),
  };
}

function takeoverOf(lines: readonly WitnessLine[], agentId: string, { pid, at }: Stalled): number | undefined {
  const offset = Date.now() - steadyNow();
  const taken = lines.filter((line) => line.type === "acquired" && line.agentId === agentId && line.pid !== pid);
  const first = Math.min(...taken.map((line) => line.at));
  return Number.isFinite(first) ? first + offset - at : undefined;
}
