import type { Agent, Turn } from "../src/index.ts";
import { taskPrefix } from "./model/script.ts";

/** Runs or joins the first turn of an agent of chaos/worker-agents.ts, whichever process began it. */
export function firstTurn(agent: Agent): Turn {
  return agent.executeTurn(`${taskPrefix}${agent.agentId}`, { key: "first" });
}
