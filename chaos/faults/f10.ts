import type { TurnResult } from "../../src/index.ts";
import type { Entry } from "../../src/state/index.ts";
import { evidenceOf } from "../evidence.ts";
import { taskPrefix } from "../model/script.ts";
import { type ChaosOptions, type ChaosReport, type ChaosScenario, reportOf } from "../scenario.ts";
import { summaryOf } from "../summary.ts";
import { withWorkers, type WorkersStage } from "../workers/stage.ts";
import { TOOL_QUEUE } from "../workers/team.ts";

const ROUNDS = 20;
const SHORT_ROUNDS = 1;
const LEASE_MS = 2_000;
const WORKERS = 3;

/** The allowed deaths and the expected outcome of each poisoned agent. */
interface Poison {
  /** Name of the definition. */
  readonly name: string;
  readonly mostDeaths: number;
  readonly queue: string;
  /** Whether the outcome is the expected one. */
  readonly isRight: (result: TurnResult, outcome: string | undefined, code: string | undefined) => boolean;
}

const poisons: readonly Poison[] = [
  {
    name: "dies",
    mostDeaths: 2,
    queue: TOOL_QUEUE,
    isRight: ({ status }, outcome, code) => status === "completed" && outcome === "error" && code === "job_worker_died",
  },
  {
    name: "dies-once",
    mostDeaths: 1,
    queue: TOOL_QUEUE,
    isRight: ({ status }, outcome) => status === "completed" && outcome === "outcome_unknown",
  },
  {
    name: "dies-here",
    mostDeaths: 2,
    queue: "wake",
    isRight: ({ status, stopReason }) => status === "failed" && stopReason === "error",
  },
];

/** Tools and turns that kill every process that runs them. A round is one of each kind. */
export const f10: ChaosScenario = {
  name: "F10",
  title:
    "a job that kills its worker: two deaths at most, one where it may not be repeated, a dead letter, and an error for the agent",
  on: ["redis"],
  run: runPoison,
};

export async function runPoison(options: ChaosOptions): Promise<ChaosReport> {
  const { seed, short, folder, progress } = options;
  const rounds = options.rounds ?? (short ? SHORT_ROUNDS : ROUNDS);
  return await withWorkers(folder, { workers: WORKERS, agents: 10, calls: 2, leaseMs: LEASE_MS }, async (stage) => {
    const violations: string[] = [];
    const endedMs: number[] = [];
    let right = 0;
    for (let round = 1; round <= rounds; round += 1) {
      for (const poison of poisons) {
        const begun = performance.now();
        const found = await runOne(stage, poison, `f10-${round}-${poison.name}`);
        endedMs.push(performance.now() - begun);
        violations.push(...found);
        if (found.length === 0) right += 1;
      }
      progress(`${round}/${rounds}: ${violations.length} violations`);
    }
    violations.push(...(await deadLetterFaults(stage, rounds)), ...stage.pool.faults);
    return reportOf(
      { name: f10.name, seed },
      { operations: rounds * poisons.length, succeeded: right, violations },
      { deaths: stage.pool.deaths, endedMs: summaryOf(endedMs) },
    );
  });
}

async function runOne(
  { client, pool, servers, place }: WorkersStage,
  poison: Poison,
  agentId: string,
): Promise<string[]> {
  await pool.allUp();
  const before = pool.deaths;
  const agent = await client.agent(poison.name, { agentId });
  await agent.start();
  const result = await agent.executeTurn(`${taskPrefix}${agentId}`).result;
  const deaths = pool.deaths - before;
  const attempts = servers.ledger.log.lines().filter(({ key }) => key.startsWith(`${agentId}#`)).length;
  const tree = (await evidenceOf(place)).find(({ rootAgentId }) => rootAgentId === agentId);
  const entries = tree?.agents.flatMap((one) => one.entries) ?? [];
  const end = entries.find((entry): entry is Extract<Entry, { type: "tool.settled" }> => entry.type === "tool.settled");
  const faults: string[] = [];
  if (deaths > poison.mostDeaths) faults.push(`${deaths} workers died of it`);
  if (attempts > poison.mostDeaths) faults.push(`its tool was begun ${attempts} times`);
  if (!poison.isRight(result, end?.outcome, end?.error?.code)) {
    faults.push(`it ended ${result.status}, ${result.stopReason}; its call ${end?.outcome}, ${end?.error?.code}`);
  }
  return faults.map((text) => `${agentId}: ${text}`);
}

/** Each poisoned job left a dead letter with the reason. */
async function deadLetterFaults({ client }: WorkersStage, rounds: number): Promise<string[]> {
  const queues = new Set(poisons.map(({ queue }) => queue));
  const faults: string[] = [];
  for (const queue of queues) {
    const expected = poisons.filter((one) => one.queue === queue).length * rounds;
    const letters = await client.queues.deadLetters(queue, { limit: 1_000 });
    const right = letters.filter(({ cause }) => cause.code === "worker_died").length;
    if (right !== expected || letters.length !== expected)
      faults.push(
        `${letters.length} dead letters of queue ${queue}, ${right} of them for deaths; ${expected} were due`,
      );
  }
  return faults;
}
