/**
 * A process that runs turns continuously: `node chaos/soak/worker.ts ORDERS` (JSON). After each batch of agents, when it is
 * idle, it collects garbage and reports its memory.
 */
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { z } from "zod";
import { type Agent, createRuntime, type TurnResult } from "../../src/index.ts";
import { storesAt } from "../stores-at.ts";
import { kindOf, type TurnKind } from "./script.ts";
import { soakTeam } from "./team.ts";
import type { Sample } from "./trend.ts";

const ordersSchema = z.object({
  store: z.string(),
  model: z.string(),
  /** A batch: concurrent agents, and turns of each. */
  agents: z.int().positive(),
  turns: z.int().positive(),
  batches: z.int().positive().nullable(),
  /** Milliseconds after which no further batch is started. */
  forMs: z.int().positive().nullable(),
});
export type SoakOrders = z.infer<typeof ordersSchema>;

/** The JSON lines that the worker writes. */
export type SoakLine =
  | ({ readonly type: "sample"; readonly children: number } & Sample)
  | { readonly type: "fault"; readonly text: string };

function tell(line: SoakLine): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;
process.on("warning", ({ name, message }) => tell({ type: "fault", text: `a warning: ${name}: ${message}` }));

const orders = ordersSchema.parse(JSON.parse(process.argv[2] ?? "{}"));
const runtime = await createRuntime({ agents: [soakTeam(orders.model)], stores: storesAt(orders.store) });
let turns = 0;
let children = 0;

async function runTurn(agent: Agent, kind: TurnKind, isFollowed: boolean): Promise<TurnResult> {
  const turn = agent.executeTurn(kind);
  if (kind === "approve") {
    const rest = await turn.settled;
    if (rest.status === "waiting" && rest.reason === "request") {
      for (const { requestId } of await agent.requests()) await runtime.decide(requestId, { verdict: "approved" });
    }
  }
  if (kind === "abort") {
    for await (const event of turn) if (event.type === "step.started") break;
    await turn.abort();
  }
  if (isFollowed) for await (const event of turn) void event;
  return await turn.result;
}

async function runAgent(agentId: string): Promise<void> {
  const agent = await runtime.agent("lead", { agentId });
  await agent.start();
  for (let number = 1; number <= orders.turns; number += 1) {
    const kind = kindOf(number);
    const { status, text } = await runTurn(agent, kind, number % 10 === 2);
    turns += 1;
    if (kind === "child") children += 1;
    const isRight = kind === "abort" ? status === "stopped" : status === "completed" && text === `done: ${kind}`;
    if (!isRight) tell({ type: "fault", text: `${agentId}, turn ${number}, ${kind}: ${status}, ${text}` });
  }
  await agent.shutdown();
}

function handlesNow(): Record<string, number> {
  const counts: Record<string, number> = {};
  for (const kind of process.getActiveResourcesInfo()) counts[kind] = (counts[kind] ?? 0) + 1;
  return counts;
}

const begun = performance.now();
const isOver = (batch: number): boolean =>
  orders.forMs === null ? batch > (orders.batches ?? 1) : performance.now() - begun > orders.forMs;
for (let batch = 1; !isOver(batch); batch += 1) {
  await Promise.all(Array.from({ length: orders.agents }, (_, index) => runAgent(`soak-${batch}-${index + 1}`)));
  collect();
  const { heapUsed, external, rss } = process.memoryUsage();
  tell({ type: "sample", turns, children, heapBytes: heapUsed + external, rssBytes: rss, handles: handlesNow() });
}
await runtime.shutdown();
