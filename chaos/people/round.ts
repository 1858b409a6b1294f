import type { AgentRequest, Json } from "../../src/index.ts";
import { DEFAULT_TENANT } from "../../src/state/index.ts";
import { decisionViolations } from "../checks/decision-checks.ts";
import { byKey } from "../checks/effect-checks.ts";
import { journalViolations } from "../../src/testing/simulation/journal-checks.ts";
import { prefixViolations } from "../checks/prefix-checks.ts";
import { restViolations } from "../../src/testing/simulation/rest-checks.ts";
import { type AgentEvidence, type TreeEvidence } from "../../src/testing/simulation/evidence.ts";
import { evidenceOf } from "../evidence.ts";
import type { Ground } from "../ground.ts";
import type { Attempt } from "../ledger/effect-ledger.ts";
import type { LineReader } from "../line-log.ts";
import { deedOf } from "./clerk.ts";
import { type LifeEnd, runLife, stuckOf } from "./life.ts";
import type { PeopleFault, PeopleOrders, PlannedDecision } from "./orders.ts";
import { storesAt } from "../stores-at.ts";

/** The servers and stores that all rounds share. */
export interface PeopleStage {
  readonly ground: Ground;
  readonly ledger: { readonly address: string; readonly log: LineReader<Attempt> };
}

/** One process of a round. */
export interface PlannedLife {
  readonly whenWaiting: PeopleOrders["whenWaiting"];
  readonly fault: PeopleFault | null;
  readonly recovers: boolean;
  readonly gapMs: number;
}

export interface PeoplePlan {
  readonly name: string;
  readonly decisions: readonly PlannedDecision[];
  /** Each process must die before the next starts. A last process, which decides itself, follows them. */
  readonly lives: readonly PlannedLife[];
}

export interface PeopleResult {
  readonly deaths: number;
  /** Number of deaths when a call was decided but had no result yet. */
  readonly deathsInBetween: number;
  readonly completed: boolean;
  readonly violations: readonly string[];
}

/** Runs processes that die one after the other, lets a last one finish, and audits the stored data. */
export async function runPeopleRound(stage: PeopleStage, plan: PeoplePlan): Promise<PeopleResult> {
  const store = stage.ground.locationOf(plan.name);
  const orders = { store, ledger: stage.ledger.address, agentId: plan.name, decisions: [...plan.decisions] };
  const last: PlannedLife = { whenWaiting: "decides", fault: null, recovers: plan.name.length % 2 === 0, gapMs: 0 };
  const violations: string[] = [];
  let [deaths, deathsInBetween] = [0, 0];
  let end: LifeEnd | undefined;
  for (const { gapMs, ...life } of [...plan.lives, last]) {
    const before = await evidenceOf(store);
    end = await runLife({ ...orders, ...life, recovers: life.recovers && deaths > 0 }, gapMs);
    const after = await evidenceOf(store);
    violations.push(...prefixViolations(before, after));
    if (!end.died) break;
    deaths += 1;
    if (after.some(isInBetween)) deathsInBetween += 1;
  }
  const stuck = end ? stuckOf(end) : "no process ran";
  if (stuck !== undefined) violations.push(stuck);
  const completed = end?.lines.some((line) => line.type === "ended" && line.status === "completed") ?? false;
  violations.push(...(await auditEnd(stage, store, plan.decisions)));
  const labelled = violations.map((text) => `${plan.name} ${JSON.stringify(plan.lives)}: ${text}`);
  return { deaths, deathsInBetween, completed, violations: labelled };
}

/** Whether a call has a stored decision but no result. */
function isInBetween({ agents }: TreeEvidence): boolean {
  return agents.some(({ entries, inbox }) => {
    const settled = new Set(entries.flatMap((entry) => (entry.type === "tool.settled" ? [entry.callId] : [])));
    const decided = [
      ...entries.flatMap((entry) => (entry.type === "request.decided" ? [entry.callId] : [])),
      ...inbox.flatMap((item) => (item.kind === "decision" ? [item.callId] : [])),
    ];
    return decided.some((callId) => !settled.has(callId));
  });
}

async function auditEnd(
  { ledger }: PeopleStage,
  store: string,
  planned: readonly PlannedDecision[],
): Promise<string[]> {
  const trees = await evidenceOf(store);
  const requests = await requestsIn(store);
  const attempts = byKey(ledger.log.lines());
  const audit = (agent: AgentEvidence): string[] => [
    ...journalViolations(agent),
    ...decisionViolations(agent, requests, attempts, (name, args) => deedOf(name, paymentOf(args))),
  ];
  return [
    ...trees.flatMap((tree) => [...restViolations(tree), ...tree.agents.flatMap(audit)]),
    ...planned.flatMap(({ callIndex, verdict }) => {
      const stored = requests.find(({ callId }) => callId.endsWith(`:${callIndex}`))?.decision?.verdict;
      return stored === verdict ? [] : [`call ${callIndex} was to be ${verdict}, and is stored as ${stored ?? "open"}`];
    }),
  ];
}

function paymentOf(args: Json): { readonly to: string; readonly amount: number } {
  return args as { readonly to: string; readonly amount: number };
}

async function requestsIn(store: string): Promise<AgentRequest[]> {
  const stores = storesAt(store);
  try {
    return await stores.requests({ tenant: DEFAULT_TENANT, limit: 1_000 });
  } finally {
    await stores.close();
  }
}
