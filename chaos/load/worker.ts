/**
 * A process under load: `node chaos/load/worker.ts ORDERS` (JSON). It runs turns of the team of chaos/worker-agents.ts, some at
 * a time and each of an agent of its own, until it is told to stop, and goes on where it is told to try again.
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
  /** How its agents' ids begin. */
  name: z.string(),
  /** Turns at a time. */
  lanes: z.int().positive(),
  leaseMs: z.int().positive(),
  /** How long a command of its stores may take, in milliseconds; default: as `storesAt` has it. */
  timeoutMs: z.int().positive().optional(),
  /** Whether agents may be gone that were there: they are made again then. */
  mayLose: z.boolean(),
  witness: z.string(),
  /** It begins nothing more once this file is there. */
  stopFile: z.string(),
});
export type LoadOrders = z.infer<typeof ordersSchema>;

/** What the worker writes, one line each. */
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

/** What is told of an agent that was made, or started, and is so no more. */
const forgotten: ReadonlySet<string> = new Set(["not_found", "agent_not_started"]);

function isPassing({ retryable, code }: TroupeError): boolean {
  return retryable || (orders.mayLose && forgotten.has(code));
}

/** Every turn of it that this process has begun, so that what is lost can be looked for. */
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
// What had ended, and is lost, is carried on or done again.
if (orders.mayLose) await Promise.all(begun.map((agentId) => toItsEnd(agentId)));
await runtime.shutdown();
tell({ type: "over", peakMegabytes: Math.round(process.resourceUsage().maxRSS / 1_000) });
