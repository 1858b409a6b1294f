import type { Agent, Turn } from "../src/index.ts";
import { taskPrefix } from "./model/script.ts";

/** The first turn of an agent of chaos/worker-agents.ts, whoever has begun it. */
export function firstTurn(agent: Agent): Turn {
  const { openTurnId, turnCount } = agent.state;
  if (openTurnId !== null) return agent.turn(openTurnId);
  if (turnCount > 0) return agent.turn(`${agent.agentId}#1`);
  return agent.executeTurn(`${taskPrefix}${agent.agentId}`);
}
