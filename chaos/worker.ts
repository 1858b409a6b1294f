/**
 * One process of the system under test: `node chaos/worker.ts ORDERS` (JSON). It opens the store, finishes each agent's
 * first turn from wherever earlier processes left it, and prints its progress as lines of JSON.
 * `TROUPE_FAULT="name:k"` kills it at a fault point.
 */
import { performance } from "node:perf_hooks";
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { armFaultPoints } from "../src/base/index.ts";
import { type Agent, createRuntime, type Runtime, TroupeError, type TurnResult } from "../src/index.ts";
import { faultPointNames } from "./fault-point-names.ts";
import { firstTurn } from "./first-turn.ts";
import { armStall, stallSchema } from "./stall.ts";
import { storesAt } from "./stores-at.ts";
import { witnessed } from "./witness.ts";
import { chaosFan, chaosTeam } from "./worker-agents.ts";

const ordersSchema = z.object({
  /** Location for `storesAt`. */
  store: z.string(),
  ledger: z.string(),
  model: z.string(),
  /** The definition of its agents. Default: `lead`. */
  agent: z.string().optional(),
  agentIds: z.array(z.string()),
  /** Whether unfinished work is resumed by `runtime.recover()` or by starting each agent. */
  recovers: z.boolean(),
  /** Whether to count the passes of each fault point instead of dying at one. */
  counts: z.boolean(),
  leaseMs: z.int().positive().optional(),
  /** Path of the log of the stores' answers. Default: no log. */
  witness: z.string().optional(),
  /** Stall after its first turn is open. Default: none. */
  stall: stallSchema.optional(),
  /** Whether it keeps retrying while other processes own its agents. Default: that is an error. */
  insists: z.boolean().optional(),
});
export type WorkerOrders = z.infer<typeof ordersSchema>;

/** The JSON lines that the worker writes. */
export type WorkerLine =
  | { readonly type: "up"; readonly recovers: boolean; readonly milliseconds: number }
  | { readonly type: "stalled"; readonly pid: number; readonly at: number }
  | { readonly type: "turn"; readonly agentId: string; readonly status: TurnResult["status"] }
  | { readonly type: "hits"; readonly hits: Readonly<Record<string, number>> };

const MOST_HITS = 500;
const INSISTS_EVERY_MS = 60;
/** Errors while another process owns the agent, or has just taken it over. */
const passing: ReadonlySet<string> = new Set(["already_owned", "lease_lost"]);

function tell(line: WorkerLine): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

async function bringToEnd(runtime: Runtime, agentId: string): Promise<TurnResult> {
  for (;;) {
    const agent = await runtime.agent(orders.agent ?? "lead", { agentId });
    const { openTurnId, turnCount } = agent.state;
    if (openTurnId === null && turnCount > 0) return await firstTurn(agent).result;
    try {
      if (!orders.insists || !orders.recovers) {
        await agent.start();
        return await ownTurn(agent);
      }
      await runtime.recover();
    } catch (error) {
      if (!orders.insists || !(error instanceof TroupeError) || !passing.has(error.code)) throw error;
    }
    await delay(INSISTS_EVERY_MS);
  }
}

async function ownTurn(agent: Agent): Promise<TurnResult> {
  const turn = firstTurn(agent);
  await turn.id;
  const { stall } = orders;
  if (stall) armStall(stall, () => tell({ type: "stalled", pid: process.pid, at: Date.now() }));
  return await turn.result;
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
const plain = storesAt(orders.store);
const stores = orders.witness === undefined ? plain : witnessed(plain, orders.witness);
const { leaseMs, ledger, model } = orders;
const runtime = await createRuntime({ agents: [chaosTeam(ledger, model), chaosFan(ledger, model)], stores, leaseMs });
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
