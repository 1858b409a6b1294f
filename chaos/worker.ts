/**
 * One process of the system under test: `node chaos/worker.ts ORDERS` (JSON). It opens the store, brings each agent to its
 * first turn's end, whatever earlier processes have left, and tells what it does in lines of JSON.
 * `TROUPE_FAULT="name:k"` kills it at a fault point.
 */
import { performance } from "node:perf_hooks";
import { z } from "zod";
import { armFaultPoints } from "../src/base/index.ts";
import { type Agent, createRuntime, type Runtime, type TurnResult } from "../src/index.ts";
import { sqliteStores } from "../src/stores/sqlite.ts";
import { faultPointNames } from "./fault-point-names.ts";
import { taskPrefix } from "./model/script.ts";
import { chaosTeam } from "./worker-agents.ts";

const ordersSchema = z.object({
  store: z.string(),
  ledger: z.string(),
  model: z.string(),
  agentIds: z.array(z.string()),
  /** Whether unfinished work is taken up by `runtime.recover()` or by starting each agent. */
  recovers: z.boolean(),
  /** Counts how often each fault point is passed, in place of dying at one. */
  counts: z.boolean(),
});
export type WorkerOrders = z.infer<typeof ordersSchema>;

/** What the worker writes, one line each. */
export type WorkerLine =
  | { readonly type: "up"; readonly recovers: boolean; readonly milliseconds: number }
  | { readonly type: "turn"; readonly agentId: string; readonly status: TurnResult["status"] }
  | { readonly type: "hits"; readonly hits: Readonly<Record<string, number>> };

const MOST_HITS = 500;

function tell(line: WorkerLine): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

async function bringToEnd(runtime: Runtime, agentId: string): Promise<TurnResult> {
  const agent = await runtime.agent("lead", { agentId });
  await agent.start();
  return await firstTurn(agent).result;
}

function firstTurn(agent: Agent) {
  const { openTurnId, turnCount } = agent.state;
  if (openTurnId !== null) return agent.turn(openTurnId);
  if (turnCount > 0) return agent.turn(`${agent.agentId}#1`);
  return agent.executeTurn(`${taskPrefix}${agent.agentId}`);
}

function countHits(): () => Record<string, number> {
  const hits: Record<string, number> = Object.fromEntries(faultPointNames.map((name) => [name, 0]));
  const count = (name: string) => (): void => {
    hits[name] = (hits[name] ?? 0) + 1;
  };
  armFaultPoints(
    faultPointNames.flatMap((name) =>
      Array.from({ length: MOST_HITS }, (_, index) => ({ name, hit: index + 1, action: count(name) })),
    ),
  );
  return () => hits;
}

const orders = ordersSchema.parse(JSON.parse(process.argv[2] ?? "{}"));
const hits = orders.counts ? countHits() : undefined;
const begun = performance.now();
const stores = sqliteStores(orders.store);
const runtime = await createRuntime({ agents: [chaosTeam(orders.ledger, orders.model)], stores });
const taken = orders.recovers ? await runtime.recover() : [];
tell({ type: "up", recovers: taken.length > 0, milliseconds: performance.now() - begun });
await Promise.all(
  orders.agentIds.map(async (agentId) => {
    const { status } = await bringToEnd(runtime, agentId);
    tell({ type: "turn", agentId, status });
  }),
);
await runtime.shutdown();
if (hits) tell({ type: "hits", hits: hits() });
