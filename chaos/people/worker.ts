/**
 * One process of a team whose calls need approval: `node chaos/people/worker.ts ORDERS` (JSON). It finishes the agent's
 * first turn from wherever earlier processes left it; when the turn waits, it follows its orders.
 */
import { armFaultPoints } from "../../src/base/index.ts";
import { type Agent, createRuntime, type Turn, type TurnResult } from "../../src/index.ts";
import { clerkAt } from "./clerk.ts";
import { decideAsPlanned, nextDecision } from "./decide.ts";
import { type PeopleLine, peopleOrdersSchema } from "./orders.ts";
import { storesAt } from "../stores-at.ts";

const orders = peopleOrdersSchema.parse(JSON.parse(process.argv[2] ?? "{}"));
let isArmed = false;

function tell(line: PeopleLine): void {
  process.stdout.write(`${JSON.stringify(line)}\n`);
}

function arm(from: "start" | "waiting"): void {
  const { fault } = orders;
  if (isArmed || fault?.from !== from) return;
  isArmed = true;
  armFaultPoints([fault]);
}

function firstTurn(agent: Agent): Turn {
  const { openTurnId, turnCount } = agent.state;
  if (openTurnId !== null) return agent.turn(openTurnId);
  return turnCount > 0 ? agent.turn(`${agent.agentId}#1`) : agent.executeTurn("Pay.");
}

/** Runs the turn to its end and decides open requests. */
async function bringToEnd(agent: Agent): Promise<TurnResult> {
  let turn = firstTurn(agent);
  for (;;) {
    const rest = await turn.settled;
    if (rest.status !== "waiting") return rest;
    if (rest.reason !== "request")
      throw new Error(`The turn rests though no client paused it: ${JSON.stringify(rest)}`);
    arm("waiting");
    tell({ type: "waiting", requestIds: rest.requests.map(({ requestId }) => requestId) });
    if (orders.whenWaiting === "dies") process.kill(process.pid, "SIGKILL");
    if (orders.whenWaiting === "listens") return await turn.result;
    const next = nextDecision(orders.decisions, rest.requests);
    if (!next) throw new Error(`it waits, and everything was answered: ${JSON.stringify(rest)}`);
    await decideAsPlanned(runtime, next.request, next.decision);
    turn = agent.turn(rest.turnId);
  }
}

arm("start");
const runtime = await createRuntime({ agents: [clerkAt(orders.ledger)], stores: storesAt(orders.store) });
if (orders.recovers) await runtime.recover();
const agent = await runtime.agent("clerk", { agentId: orders.agentId });
await agent.start();
const { status, text } = await bringToEnd(agent);
tell({ type: "ended", status, text });
await runtime.shutdown();
