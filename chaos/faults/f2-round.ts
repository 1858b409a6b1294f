import { textOf } from "../../src/index.ts";
import { byKey, effectViolations, repeatedAttempts } from "../checks/effect-checks.ts";
import { journalViolations } from "../../src/testing/simulation/journal-checks.ts";
import { modelViolations, repeatedRequests } from "../checks/model-checks.ts";
import { prefixViolations, spawnViolations } from "../checks/prefix-checks.ts";
import { restViolations } from "../../src/testing/simulation/rest-checks.ts";
import { billedBelow, spendingViolations } from "../checks/spending-checks.ts";
import type { Ground } from "../ground.ts";
import { type AgentEvidence, type TreeEvidence } from "../../src/testing/simulation/evidence.ts";
import { evidenceOf } from "../evidence.ts";
import type { Attempt } from "../ledger/effect-ledger.ts";
import type { LineReader } from "../line-log.ts";
import { type BilledCallLine, taskPrefix } from "../model/script.ts";
import { hookPrefix, price } from "../worker-agents.ts";
import { type Fault, runWorker, stuckOf, type WorkerEnd } from "../worker-process.ts";

/** The servers and stores that all rounds share. */
export interface Stage {
  readonly ground: Ground;
  readonly ledger: { readonly address: string; readonly log: LineReader<Attempt> };
  readonly model: { readonly address: string; readonly log: LineReader<BilledCallLine> };
}

export interface RoundPlan {
  readonly name: string;
  /** The definition of its agents. Default: `lead`. */
  readonly agent?: string | undefined;
  /** Default: one agent with the round's name. */
  readonly agentIds?: readonly string[] | undefined;
  /**
   * The first process dies at the first fault, the next at the second, and so on. Each must occur before the next applies.
   */
  readonly faults: readonly Fault[];
  /** Number of deaths required; with fewer, the round does not count. */
  readonly wantedDeaths: number;
  /** Whether survivors resume unfinished work by `runtime.recover()` or by starting each agent. */
  readonly recovers: boolean;
}

export interface RoundResult {
  readonly deaths: number;
  /** Number of turns of all agents, and how many of them completed. */
  readonly turns: number;
  readonly completed: number;
  /** For each turn that was interrupted during its calls: the number of calls, and how many had no result. */
  readonly cutOff: readonly { readonly calls: number; readonly open: number }[];
  /** Calls with unknown outcome, settled in full. */
  readonly unconfirmed: number;
  /** Milliseconds from the last process's first statement until it owned its agents, and until its turns had ended. */
  readonly takenUpMs: number | undefined;
  readonly recoveredMs: number | undefined;
  readonly violations: readonly string[];
}

/** Kills processes at the faults, one after the other, lets a last one finish, and audits the stored data. */
export async function runRound(stage: Stage, plan: RoundPlan): Promise<RoundResult> {
  const store = stage.ground.locationOf(plan.name);
  const { agent, agentIds = [plan.name] } = plan;
  const orders = { store, ledger: stage.ledger.address, model: stage.model.address, agent, agentIds: [...agentIds] };
  const violations: string[] = [];
  const cutOff: { readonly calls: number; readonly open: number }[] = [];
  let deaths = 0;
  let end: WorkerEnd | undefined;
  for (const fault of [...plan.faults, undefined]) {
    const before = await snapshot(stage, store);
    end = await runWorker({ ...orders, recovers: plan.recovers && deaths > 0, counts: false }, fault);
    const after = await evidenceOf(store);
    violations.push(...auditSurvivor(stage, before, after));
    if (!end.struck) break;
    deaths += 1;
    cutOff.push(...after.flatMap(({ agents }) => agents.flatMap((one) => roundOf(one) ?? [])));
  }
  const stuck = end ? stuckOf(end) : "no process ran";
  if (stuck !== undefined) violations.push(stuck);
  const trees = await evidenceOf(store);
  violations.push(...trees.flatMap((tree) => auditEnd(stage, tree)));
  const ends = trees.flatMap(({ agents }) => agents).flatMap(({ entries }) => entries.filter(isTurnEnd));
  const up = end?.lines.find((line) => line.type === "up");
  const labelled = violations.map((text) => `${plan.name} ${faultsText(plan)}: ${text}`);
  return {
    deaths,
    turns: Math.max(1, ends.length),
    completed: ends.filter(({ outcome }) => outcome === "completed").length,
    cutOff,
    unconfirmed: unconfirmedIn(trees),
    takenUpMs: deaths > 0 && up?.type === "up" ? up.milliseconds : undefined,
    recoveredMs: deaths > 0 ? end?.milliseconds : undefined,
    violations: labelled,
  };
}

/** The calls of an agent's last answer, if some have no result yet. */
function roundOf({ entries }: AgentEvidence): { readonly calls: number; readonly open: number } | undefined {
  const settled = new Set(entries.flatMap((entry) => (entry.type === "tool.settled" ? [entry.callId] : [])));
  const last = entries.findLast((entry) => entry.type === "model.responded");
  const calls = last?.type === "model.responded" ? last.calls : [];
  const open = calls.filter(({ callId }) => !settled.has(callId)).length;
  return open > 0 ? { calls: calls.length, open } : undefined;
}

function unconfirmedIn(trees: readonly TreeEvidence[]): number {
  const entries = trees.flatMap(({ agents }) => agents.flatMap((agent) => agent.entries));
  return entries.filter((entry) => "settlement" in entry && entry.settlement?.unconfirmed === true).length;
}

const isTurnEnd = (entry: AgentEvidence["entries"][number]) => entry.type === "turn.ended";

export interface Snapshot {
  readonly trees: readonly TreeEvidence[];
  readonly attempts: readonly Attempt[];
  readonly requests: number;
}

/** The committed data and the ledger between the death of one process and the start of the next. */
export async function snapshot({ ledger, model }: Stage, store: string): Promise<Snapshot> {
  return { trees: await evidenceOf(store), attempts: [...ledger.log.lines()], requests: model.log.lines().length };
}

export function auditSurvivor({ ledger, model }: Stage, before: Snapshot, after: readonly TreeEvidence[]): string[] {
  const agents = before.trees.flatMap((tree) => tree.agents);
  return [
    ...prefixViolations(before.trees, after),
    ...repeatedRequests(agents, before.requests, model.log.lines()),
    ...repeatedAttempts(agents, byKey(before.attempts), byKey(ledger.log.lines()), hookPrefix),
  ];
}

/** `isLate`: as in `effectViolations`. */
export function auditEnd(
  { ledger, model }: Pick<Stage, "ledger" | "model">,
  tree: TreeEvidence,
  isLate?: (attempt: Attempt) => boolean,
): string[] {
  const attempts = byKey(ledger.log.lines());
  const requests = model.log.lines();
  return [
    ...restViolations(tree),
    ...spawnViolations(tree),
    ...spendingViolations(tree, billedBelow([tree.rootAgentId, ...tasksOf(tree)], requests, price)),
    ...tree.agents.flatMap((agent) => [
      ...journalViolations(agent),
      ...effectViolations(agent, attempts, isLate),
      ...modelViolations(agent, requests),
    ]),
  ];
}

/** The user messages of its root. */
function tasksOf({ rootAgentId, agents }: TreeEvidence): string[] {
  const root = agents.find(({ agentId }) => agentId === rootAgentId);
  return (root?.messages ?? []).flatMap(({ role, content }) => {
    const text = textOf(content);
    return role === "user" && text.startsWith(taskPrefix) ? [text.slice(taskPrefix.length)] : [];
  });
}

function faultsText({ faults }: RoundPlan): string {
  return faults.map(({ name, hit }) => `${name}:${hit}`).join(", then ");
}
