import {
  type AgentState,
  type EntryBody,
  type Message,
  newAgentState,
  withEntry,
  withNewExecution,
} from "../../src/state/index.ts";
import { journalOf, turnId } from "../machines/bodies.ts";

export const now = 1_000;
export const user: Message = { id: "u", role: "user", createdAt: now, content: "hello", origin: "user" };

export function answer(content: string, id = `${turnId}:1`): Message {
  return { id, role: "assistant", createdAt: now, content, origin: "model" };
}

/** A state whose execution has received these entries. */
export function stateAfter(...bodies: readonly EntryBody[]): AgentState {
  const begun = withNewExecution(newAgentState({ now, agentId: "desk" }), turnId, now);
  return journalOf(bodies).reduce(withEntry, begun);
}
