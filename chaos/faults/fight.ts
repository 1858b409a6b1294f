import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { journalViolations } from "../../src/testing/simulation/journal-checks.ts";
import { restViolations } from "../../src/testing/simulation/rest-checks.ts";
import { witnessViolations } from "../checks/witness-checks.ts";
import { type AgentEvidence } from "../../src/testing/simulation/evidence.ts";
import { evidenceOf } from "../evidence.ts";
import type { Deed } from "../fight/fighter.ts";
import type { FightLine, FightOrders } from "../fight/worker.ts";
import { withGround } from "../ground.ts";
import { readLines } from "../line-log.ts";
import { jsonLinesOf, type RunEnd, runProcess, signal } from "../processes.ts";
import { type ChaosOptions, type ChaosReport, type ChaosScenario, reportOf } from "../scenario.ts";
import { type SeededRandom, seededRandom } from "../../src/testing/simulation/seeded-random.ts";
import type { WitnessLine } from "../witness.ts";

const SECONDS = 60;
const SHORT_SECONDS = 6;
const AGENTS = 200;
const LANES = 8;
const LEASE_MS = 1_000;
/** Time to finish all work afterwards, in milliseconds. A process that needs longer is stuck. */
const SETTLING_MS = 240_000;
/** Time between two stalls, and duration of a stall, which is sometimes longer than a lease. */
const LONGEST_GAP_MS = 2_000;
const LONGEST_STOP_MS = 2_500;

/** Two processes that take the same agents from each other. A round is one second. */
export const fight: ChaosScenario = {
  name: "FIGHT",
  title: "two processes fight over 200 agents for a minute, stopped now and then: one owner each at any time",
  on: ["redis", "sqlite", "postgres"],
  run: (options) => runFight(options, { agents: AGENTS, lanes: LANES }),
};

export interface FightSize {
  readonly agents: number;
  /** Agents that each process tries to own concurrently. */
  readonly lanes: number;
}

export async function runFight(options: ChaosOptions, { agents, lanes }: FightSize): Promise<ChaosReport> {
  const { folder, seed } = options;
  const seconds = options.rounds ?? (options.short ? SHORT_SECONDS : SECONDS);
  const random = seededRandom(seed);
  return await withGround(options, async (ground) => {
    const store = ground.locationOf("fight");
    const names = ["left", "right"];
    const pids: number[] = [];
    const runs = names.map((name, index) => {
      const [witness, deeds] = [join(folder, `${name}.jsonl`), join(folder, `${name}-deeds.jsonl`)];
      const times = { forMs: seconds * 1_000, leaseMs: LEASE_MS };
      return runFighter({ store, seed: seed + index, agents, lanes, ...times, witness, deeds }, (pid) =>
        pids.push(pid),
      );
    });
    const stops = await stopNowAndThen(Promise.all(runs), pids, seconds * 1_000, random);
    const ends = await Promise.all(runs);
    const lines = names.flatMap((name) => readLines<WitnessLine>(join(folder, `${name}.jsonl`)));
    const deeds = names.flatMap((name) => readLines<Deed>(join(folder, `${name}-deeds.jsonl`)));
    return await report(seed, { store, ends, lines, deeds, stops });
  });
}

async function runFighter(orders: FightOrders, onUp: (pid: number) => void): Promise<RunEnd> {
  return await runProcess("fight/worker.ts", [JSON.stringify(orders)], {
    limitMs: orders.forMs + SETTLING_MS,
    onLine: (text) => {
      const line = JSON.parse(text) as FightLine;
      if (line.type === "up") onUp(line.pid);
    },
  });
}

/** Stalls one process or the other during the fight. Returns how often. */
async function stopNowAndThen(
  runs: Promise<unknown>,
  pids: readonly number[],
  forMs: number,
  random: SeededRandom,
): Promise<number> {
  let isOver = false;
  const over = runs.then(() => {
    isOver = true;
  });
  while (pids.length < 2 && !isOver) await Promise.race([over, delay(20)]);
  const end = performance.now() + forMs;
  let stops = 0;
  while (!isOver && performance.now() < end) {
    await delay(random.between(200, LONGEST_GAP_MS));
    const pid = random.pick(pids);
    if (isOver) break;
    if (!signal(pid, "SIGSTOP")) break;
    stops += 1;
    await delay(random.between(100, LONGEST_STOP_MS));
    signal(pid, "SIGCONT");
  }
  return stops;
}

interface Fought {
  readonly store: string;
  readonly ends: readonly RunEnd[];
  readonly lines: readonly WitnessLine[];
  readonly deeds: readonly Deed[];
  readonly stops: number;
}

async function report(seed: number, { store, ends, lines, deeds, stops }: Fought): Promise<ChaosReport> {
  const trees = await evidenceOf(store);
  const agents = trees.flatMap((tree) => tree.agents);
  const entries = agents.flatMap((agent) => agent.entries);
  const done = Map.groupBy(deeds, ({ callId }) => callId);
  const said = ends.flatMap((end) => jsonLinesOf<FightLine>(end.stdout));
  const sent = said.reduce((sum, line) => sum + (line.type === "over" ? line.sent : 0), 0);
  const violations = [
    ...ends.flatMap(endText),
    ...agents.flatMap((agent) => [...journalViolations(agent), ...deedFaults(agent, done)]),
    ...trees.flatMap((tree) => restViolations(tree)),
    ...witnessViolations(agents, lines, { isComplete: true }),
  ];
  const turns = entries.filter(({ type }) => type === "turn.started").length;
  // A command that was rejected as retryable may or may not have taken effect.
  const unknown = said.reduce(
    (sum, line) => sum + (line.type === "over" ? (line.told["store_unavailable"] ?? 0) : 0),
    0,
  );
  if (turns < sent || turns > sent + unknown) violations.push(`${sent} turns were acknowledged, ${turns} were begun`);
  const completed = entries.filter((entry) => entry.type === "turn.ended" && entry.outcome === "completed").length;
  const owners = Map.groupBy(
    lines.filter((line) => line.type === "acquired"),
    ({ agentId }) => agentId,
  );
  return reportOf(
    { name: "FIGHT", seed },
    { operations: sent, succeeded: completed, violations },
    {
      agents: agents.length,
      leases: [...owners.values()].reduce((sum, leases) => sum + leases.length, 0),
      changesOfHands: [...owners.values()].reduce((sum, leases) => sum + changesIn(leases), 0),
      stops,
      staleWritesRefused: lines.filter(({ type }) => type === "stale").length,
      told: said.flatMap((line) => (line.type === "over" ? [line.told] : [])),
    },
  );
}

function changesIn(leases: readonly Extract<WitnessLine, { type: "acquired" }>[]): number {
  const inOrder = leases.toSorted((one, other) => one.epoch - other.epoch);
  return inOrder.filter(({ pid }, index) => index > 0 && inOrder[index - 1]?.pid !== pid).length;
}

/** A `once` call ran at most once, and it ran if its outcome is success. */
function deedFaults({ entries }: AgentEvidence, done: ReadonlyMap<string, readonly Deed[]>): string[] {
  return entries.flatMap((entry) => {
    if (entry.type !== "tool.settled" || entry.name !== "pay") return [];
    const count = done.get(entry.callId)?.length ?? 0;
    const faults = count > 1 ? [`${entry.callId}: a once call was done ${count} times`] : [];
    if (entry.outcome === "success" && count === 0) faults.push(`${entry.callId}: it succeeded without a call`);
    const isKnown = entry.outcome === "success" || entry.outcome === "outcome_unknown";
    return isKnown ? faults : [...faults, `${entry.callId}: it ended ${entry.outcome}`];
  });
}

function endText({ timedOut, exitCode, signal, stdout, stderr }: RunEnd): string[] {
  const said = `${stdout}${stderr}`.trim().slice(-600);
  if (timedOut) return [`a process did not finish its work: ${said}`];
  if (exitCode !== 0) return [`a process ended with exit code ${exitCode}, signal ${signal}: ${said}`];
  return stderr === "" ? [] : [`a process complained: ${said}`];
}
