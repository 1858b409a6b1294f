import type { Agent, Turn } from "../src/index.ts";
import { taskPrefix } from "./model/script.ts";

/** The first turn of an agent of chaos/worker-agents.ts, whichever process has begun it. */
export function firstTurn(agent: Agent): Turn {
  return agent.executeTurn(`${taskPrefix}${agent.agentId}`, { key: "first" });
}
