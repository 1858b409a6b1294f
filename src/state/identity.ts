import { z } from "zod";
import type { DeepReadonly } from "../base/index.ts";

/** Where a record lives: the tenant is part of every key from the start. */
export const agentKeySchema = z.object({ tenant: z.string(), agentId: z.string() });
export type AgentKey = DeepReadonly<z.infer<typeof agentKeySchema>>;

export const DEFAULT_TENANT = "default";

/** Text form of a key, for maps: a tenant may not hold a `/` (ids are validated). */
export function keyText(key: AgentKey): string {
  return `${key.tenant}/${key.agentId}`;
}

/** A child's id names its root: `root~hash`. */
export function rootOf(agentId: string): string {
  const end = agentId.indexOf("~");
  return end < 0 ? agentId : agentId.slice(0, end);
}

export function childIdOf(rootAgentId: string, hash: string): string {
  return `${rootAgentId}~${hash}`;
}

/** A turn's id names its agent and its ordinal: `agent#1`. The first turn is number 1. */
export function turnIdOf(agentId: string, number: number): string {
  return `${agentId}#${number}`;
}

export function agentOfTurn(turnId: string): string {
  const end = turnId.indexOf("#");
  return end < 0 ? turnId : turnId.slice(0, end);
}

/** The ordinal of a turn among those of its agent, from 1. */
export function numberOfTurn(turnId: string): number {
  return Number(turnId.slice(turnId.indexOf("#") + 1));
}

/** `turn:step:index`; steps count from 1, the index from 0 (design, The journal). */
export function callIdOf(turnId: string, step: number, index: number): string {
  return `${turnId}:${step}:${index}`;
}

/** Where a call stands: undo of `callIdOf`. */
export function partsOfCall(callId: string): { turnId: string; step: number; index: number } {
  const [index, step, ...turn] = callId.split(":").toReversed();
  return { turnId: turn.toReversed().join(":"), step: Number(step), index: Number(index) };
}
