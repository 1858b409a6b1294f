import type { FaultPointName } from "../fault-point-names.ts";
import { type ChaosOptions, type ChaosReport, type ChaosScenario } from "../scenario.ts";
import { type SeededRandom, seededRandom } from "../../src/testing/simulation/seeded-random.ts";
import type { Fault } from "../worker-process.ts";
import { withWorkers } from "../workers/stage.ts";
import { reportOfDeaths, runTurn, type Sent } from "./f1.ts";

const ROUNDS = 25;
const SHORT_ROUNDS = 1;
const LEASE_MS = 2_000;
const LANES = 6;
const WORKERS = 3;
/** Number of workers that are about to die. */
const ARMED = 2;
/** Most calls of a process before the call at which it dies. */
const MOST_HITS = 6;

/** Fault points at which an owner enqueues a call, and at which a worker claims it, runs it and reports its result. */
const points: readonly FaultPointName[] = ["tool.queued", "tool.claimed", "tool.body", "tool.posted"];
const names = ["foreman", "porter"];

/** SIGKILL at the fault points of queued calls, 1 to 8 of them in parallel. A round is one kill at one fault point. */
export const f2queued: ChaosScenario = {
  name: "F2-queued",
  title:
    "F2 and F23 for queued tools, in the owner and in the worker: keyed calls have one effect, once calls at most one",
  on: ["redis", "postgres"],
  run: runQueued,
};

export async function runQueued(options: ChaosOptions): Promise<ChaosReport> {
  const { seed, short, folder, progress } = options;
  const rounds = options.rounds ?? (short ? SHORT_ROUNDS : ROUNDS);
  const plan = planOf(rounds, seededRandom(seed));
  const deaths = plan.length;
  let started = 0;
  // The replacements of dead workers die next, so at least one worker always survives.
  const nextFault = (): Fault | undefined => {
    started += 1;
    return started <= ARMED || started > WORKERS ? plan.shift() : undefined;
  };
  const size = { workers: WORKERS, agents: 20, calls: 4, leaseMs: LEASE_MS, nextFault, stores: options.stores };
  return await withWorkers(folder, size, async (stage) => {
    const { pool } = stage;
    const sent: Sent[] = [];
    let begun = 0;
    const lane = async (): Promise<void> => {
      while (pool.strikes.length < deaths) {
        begun += 1;
        sent.push(await runTurn(stage, names[begun % names.length] ?? "foreman", `queued-${begun}`));
        if (begun % 20 === 0) progress(`${pool.strikes.length}/${deaths} deaths, ${sent.length} turns`);
      }
    };
    await Promise.all(Array.from({ length: LANES }, lane));
    await pool.drain();
    const deathsAt = Object.fromEntries(
      points.map((point) => [point, pool.strikes.filter(({ fault }) => fault.name === point).length]),
    );
    // The worker that should take over an agent may die next; F1 checks how long a takeover may take.
    const found = { name: f2queued.name, seed, deaths: pool.strikes, mostLeases: Infinity, figures: { deathsAt } };
    return await reportOfDeaths(stage, sent, found);
  });
}

/** All points in each round, in random order. */
function planOf(rounds: number, random: SeededRandom): Fault[] {
  return Array.from({ length: rounds }).flatMap(() => {
    const left = [...points];
    return points.map(() => {
      const name = random.pick(left);
      left.splice(left.indexOf(name), 1);
      return { name, hit: random.between(1, MOST_HITS) };
    });
  });
}
