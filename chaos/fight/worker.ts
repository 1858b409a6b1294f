/**
 * One of two processes that compete for the same agents: `node chaos/fight/worker.ts ORDERS` (JSON). For a while it takes
 * every agent it can, sends turns to its own agents and to the other process's, and releases them during their work. Then
 * both processes finish all work.
 */
import { setTimeout as delay } from "node:timers/promises";
import { z } from "zod";
import { type Agent, createRuntime, type Turn, TroupeError } from "../../src/index.ts";
import { openLineWriter } from "../line-log.ts";
import { seededRandom } from "../../src/testing/simulation/seeded-random.ts";
import { storesAt } from "../stores-at.ts";
import { witnessed } from "../witness.ts";
import { fighterNoting } from "./fighter.ts";

const ordersSchema = z.object({
  store: z.string(),
  seed: z.number(),
  agents: z.int().positive(),
  /** Duration of the fight in milliseconds. */
  forMs: z.number(),
  /** Agents that it tries to own concurrently. */
  lanes: z.int().positive(),
  leaseMs: z.int().positive(),
  witness: z.string(),
  /** Path of the log of its tools' effects. */
  deeds: z.string(),
});
export type FightOrders = z.infer<typeof ordersSchema>;

/** The JSON lines that the worker writes. */
export type FightLine =
  | { readonly type: "up"; readonly pid: number }
  /** Number of rejections by error code, and number of successes. */
  | { readonly type: "over"; readonly sent: number; readonly told: Readonly<Record<string, number>> };

/** Expected errors while another process owns the agent or takes it over, or after an own stall. */
const expected: ReadonlySet<string> = new Set([
  "already_owned",
  "lease_lost",
  "agent_busy",
  "agent_not_started",
  "store_unavailable",
]);
/** Share of turns that are sent without taking the agent first. */
const SENDS_ONLY = 0.3;
const GIVES_BACK = 0.8;
const LONGEST_HOLD_MS = 250;
const AGAIN_MS = 50;

function tell(line: FightLine): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

const orders = ordersSchema.parse(JSON.parse(process.argv[2] ?? "{}"));
const random = seededRandom(orders.seed);
const definition = fighterNoting(openLineWriter(orders.deeds, { sync: false }), random);
const stores = witnessed(storesAt(orders.store), orders.witness);
const runtime = await createRuntime({ agents: [definition], stores, leaseMs: orders.leaseMs });
const told: Record<string, number> = {};
let sent = 0;

/** Returns whether it succeeded. Throws unexpected errors. */
async function tried(work: () => Promise<void>): Promise<boolean> {
  try {
    await work();
    return true;
  } catch (error) {
    if (!(error instanceof TroupeError) || !expected.has(error.code)) throw error;
    told[error.code] = (told[error.code] ?? 0) + 1;
    return false;
  }
}

async function send(agent: Agent): Promise<Turn> {
  const turn = agent.executeTurn("Go on.", { ifBusy: "queue" });
  turn.result.catch(() => undefined);
  await turn.id;
  sent += 1;
  return turn;
}

async function fightOver(agentId: string): Promise<void> {
  const agent = await runtime.agent("fighter", { agentId });
  const isMine = random.next() >= SENDS_ONLY;
  if (isMine) await agent.start();
  const turn = await send(agent);
  await Promise.race([turn.result.catch(() => undefined), delay(random.between(0, LONGEST_HOLD_MS))]);
  if (isMine && random.next() < GIVES_BACK) await agent.shutdown();
}

/** Runs the agent until it is idle, in this process or in its current owner. */
async function settle(agentId: string): Promise<void> {
  for (;;) {
    let isSettled = false;
    await tried(async () => {
      const agent = await runtime.agent("fighter", { agentId });
      const record = await stores.readAgent({ tenant: runtime.tenant, agentId });
      const isAtRest = record?.openTurnId === null && record.queuedTurnIds.length === 0;
      isSettled = isAtRest && (await stores.inbox({ tenant: runtime.tenant, agentId })).length === 0;
      if (!isSettled) await agent.start();
    });
    if (isSettled) return;
    await delay(AGAIN_MS);
  }
}

async function lanes(work: () => Promise<boolean>): Promise<void> {
  const lane = async (): Promise<void> => {
    while (await work());
  };
  await Promise.all(Array.from({ length: orders.lanes }, lane));
}

const ids = Array.from({ length: orders.agents }, (_, index) => `fighter-${index + 1}`);
tell({ type: "up", pid: process.pid });
const end = performance.now() + orders.forMs;
await lanes(async () => {
  await tried(() => fightOver(random.pick(ids)));
  return performance.now() < end;
});
const left = [...ids];
await lanes(async () => {
  const agentId = left.shift();
  if (agentId !== undefined) await settle(agentId);
  return agentId !== undefined;
});
await runtime.shutdown();
tell({ type: "over", sent, told });
