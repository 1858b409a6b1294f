/**
 * One process of the spending scenarios: `node chaos/spending/worker.ts ORDERS` (JSON). It finishes the first turn of each
 * tree from wherever earlier processes left it. `TROUPE_FAULT="name:k"` kills it at a fault point.
 */
import { z } from "zod";
import { type Agent, createRuntime, memoryStores, type TurnResult } from "../../src/index.ts";
import { taskPrefix } from "../model/script.ts";
import { spendingTeam } from "./team.ts";
import { storesAt } from "../stores-at.ts";

const budgetSchema = z.record(z.string(), z.number());
const ordersSchema = z.object({
  /** Path of the store; `null` for stores in memory. */
  store: z.string().nullable(),
  model: z.string(),
  team: z.object({ lead: z.string(), child: z.string(), childBudget: budgetSchema }),
  trees: z.array(z.object({ agentId: z.string(), budget: budgetSchema })),
  /** Concurrent trees. */
  lanes: z.number(),
});
export type SpendingOrders = z.infer<typeof ordersSchema>;

/** The lines that the worker writes, one for each finished tree. */
export interface SpendingEnd {
  readonly agentId: string;
  readonly status: TurnResult["status"];
  readonly stopReason: string;
  readonly steps: number;
}

const orders = ordersSchema.parse(JSON.parse(process.argv[2] ?? "{}"));
const stores = orders.store === null ? memoryStores() : storesAt(orders.store);
const runtime = await createRuntime({ agents: [spendingTeam(orders.model, orders.team)], stores });

function firstTurn(agent: Agent, budget: Record<string, number>) {
  const { openTurnId, turnCount } = agent.state;
  if (openTurnId !== null) return agent.turn(openTurnId);
  if (turnCount > 0) return agent.turn(`${agent.agentId}#1`);
  return agent.executeTurn(`${taskPrefix}${agent.agentId}`, { budget });
}

let next = 0;
const lane = async (): Promise<void> => {
  for (let tree = orders.trees[next]; tree; tree = orders.trees[next]) {
    next += 1;
    const { agentId, budget } = tree;
    const agent = await runtime.agent("lead", { agentId });
    await agent.start();
    const { status, stopReason, steps } = await firstTurn(agent, budget).result;
    const end: SpendingEnd = { agentId, status, stopReason, steps };
    process.stdout.write(`${JSON.stringify(end)}\n`);
  }
};
await Promise.all(Array.from({ length: orders.lanes }, lane));
await runtime.shutdown();
