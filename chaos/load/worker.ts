/**
 * A process under load: `node chaos/load/worker.ts ORDERS` (JSON). It runs turns of the team of chaos/worker-agents.ts,
 * several concurrently and each with a new agent, until it is told to stop. It retries rejected commands that are
 * retryable.
 */
import { existsSync } from "node:fs";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { createRuntime, TroupeError, type TurnResult } from "../../src/index.ts";
import { firstTurn } from "../first-turn.ts";
import { storesAt } from "../stores-at.ts";
import { witnessed } from "../witness.ts";
import { chaosTeam } from "../worker-agents.ts";

const ordersSchema = z.object({
  store: z.string(),
  ledger: z.string(),
  model: z.string(),
  /** Prefix of its agents' ids. */
  name: z.string(),
  /** Concurrent turns. */
  lanes: z.int().positive(),
  leaseMs: z.int().positive(),
  /** Timeout of its stores' commands, in milliseconds. Default: the default of `storesAt`. */
  timeoutMs: z.int().positive().optional(),
  /** Whether existing agents may disappear. They are then created again. */
  mayLose: z.boolean(),
  witness: z.string(),
  /** It starts nothing more once this file exists. */
  stopFile: z.string(),
});
export type LoadOrders = z.infer<typeof ordersSchema>;

/** The JSON lines that the worker writes. */
export type LoadLine =
  | { readonly type: "begun"; readonly agentId: string }
  | { readonly type: "again"; readonly agentId: string; readonly code: string }
  | { readonly type: "turn"; readonly agentId: string; readonly status: TurnResult["status"] }
  | { readonly type: "over"; readonly peakMegabytes: number };

const AGAIN_MS = 100;

function tell(line: LoadLine): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

const orders = ordersSchema.parse(JSON.parse(process.argv[2] ?? "{}"));
const { store, ledger, model, leaseMs } = orders;
const stores = witnessed(storesAt(store, { timeoutMs: orders.timeoutMs }), orders.witness);
const runtime = await createRuntime({ agents: [chaosTeam(ledger, model)], stores, leaseMs });

async function toItsEnd(agentId: string): Promise<TurnResult> {
  for (;;) {
    try {
      const agent = await runtime.agent("lead", { agentId });
      await agent.start();
      return await firstTurn(agent).result;
    } catch (error) {
      if (!(error instanceof TroupeError) || !isPassing(error)) throw error;
      tell({ type: "again", agentId, code: error.code });
      await delay(AGAIN_MS);
    }
  }
}

/** Errors for an agent that was created or started, but whose writes were lost. */
const forgotten: ReadonlySet<string> = new Set(["not_found", "agent_not_started"]);

function isPassing({ retryable, code }: TroupeError): boolean {
  return retryable || (orders.mayLose && forgotten.has(code));
}

/** Every turn that this process has begun, to find lost ones. */
const begun: string[] = [];
let count = 0;
const lane = async (): Promise<void> => {
  while (!existsSync(orders.stopFile)) {
    count += 1;
    const agentId = `${orders.name}-${count}`;
    begun.push(agentId);
    tell({ type: "begun", agentId });
    const { status } = await toItsEnd(agentId);
    tell({ type: "turn", agentId, status });
  }
};
await Promise.all(Array.from({ length: orders.lanes }, lane));
// Continues or repeats work whose result was lost.
if (orders.mayLose) await Promise.all(begun.map((agentId) => toItsEnd(agentId)));
await runtime.shutdown();
tell({ type: "over", peakMegabytes: Math.round(process.resourceUsage().maxRSS / 1_000) });
