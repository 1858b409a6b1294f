import { taskPrefix } from "../model/script.ts";
import { signal } from "../processes.ts";
import { type ChaosOptions, type ChaosReport, type ChaosScenario, reportOf } from "../scenario.ts";
import { summaryOf } from "../summary.ts";
import { withWorkers, type WorkersStage } from "../workers/stage.ts";
import { LOCK_LEASES } from "../workers/queues-at.ts";

const ROUNDS = 20;
const SHORT_ROUNDS = 1;
const LEASE_MS = 2_000;
/** Most time between the moment at which the second stall can be detected and the agent's error. */
const TOLD_MS = 5_000;

/** Tools that stall every process that runs them. A round is one call. */
export const f11: ChaosScenario = {
  name: "F11",
  title: "a tool job whose workers stand still: its agent has an error within 5 s of the last stall limit",
  on: ["redis"],
  run: runStalled,
};

export async function runStalled(options: ChaosOptions): Promise<ChaosReport> {
  const { seed, short, folder, progress } = options;
  const rounds = options.rounds ?? (short ? SHORT_ROUNDS : ROUNDS);
  return await withWorkers(folder, { workers: 3, agents: 10, calls: 2, leaseMs: LEASE_MS }, async (stage) => {
    const violations: string[] = [];
    const toldMs: number[] = [];
    let right = 0;
    for (let round = 1; round <= rounds; round += 1) {
      const { ms, faults } = await runOne(stage, `f11-${round}`);
      toldMs.push(ms);
      violations.push(...faults);
      if (faults.length === 0) right += 1;
      progress(`${round}/${rounds}: told ${Math.round(ms)} ms after the limit`);
    }
    return reportOf(
      { name: f11.name, seed },
      { operations: rounds, succeeded: right, violations: [...violations, ...stage.pool.faults] },
      { toldMs: summaryOf(toldMs) },
    );
  });
}

async function runOne({ client, pool, servers }: WorkersStage, agentId: string) {
  await pool.allUp();
  const agent = await client.agent("stops", { agentId });
  await agent.start();
  const result = await agent.executeTurn(`${taskPrefix}${agentId}`).result;
  const endedAt = Date.now();
  const attempts = servers.ledger.log.lines().filter(({ key }) => key.startsWith(`${agentId}#`));
  // Stalled workers do not continue, so others replace them.
  for (const { pid } of attempts) signal(pid, "SIGKILL");
  const ms = endedAt - (attempts.at(-1)?.at ?? endedAt) - LOCK_LEASES * LEASE_MS;
  const faults: string[] = [];
  const [error] = result.errors;
  if (attempts.length > 2) faults.push(`${attempts.length} workers were stalled`);
  if (ms > TOLD_MS) faults.push(`its agent got the error ${Math.round(ms)} ms after the limit`);
  if (result.status !== "completed") faults.push(`its turn ended ${result.status}, ${result.stopReason}`);
  if (error?.code !== "job_worker_died") faults.push(`the error is ${error?.code}: ${error?.message}`);
  return { ms, faults: faults.map((text) => `${agentId}: ${text}`) };
}
