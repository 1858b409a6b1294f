// Builds and parses the ids of agents, turns and calls. Needs neither Node nor zod, because web pages import it too.
import type { AgentKey } from "./record.ts";

export const DEFAULT_TENANT = "default";

/** The key as text, for maps. Unambiguous, because ids are validated: a tenant cannot contain a `/`. */
export function keyText(key: AgentKey): string {
  return `${key.tenant}/${key.agentId}`;
}

/** A child's id contains its root's id: `root~hash`. */
export function rootOf(agentId: string): string {
  const end = agentId.indexOf("~");
  return end < 0 ? agentId : agentId.slice(0, end);
}

export function childIdOf(rootAgentId: string, hash: string): string {
  return `${rootAgentId}~${hash}`;
}

/**
 * The id, or the text that begins with one, as it is in a tree with another root. A fork's ids differ from those of its origin only in
 * their root.
 */
export function withRoot(text: string, rootAgentId: string, other: string): string {
  return text.startsWith(rootAgentId) ? `${other}${text.slice(rootAgentId.length)}` : text;
}

/** Identifies a call in a tree and in all forks of it. */
export function recordedCallId(callId: string): string {
  return callId.slice(rootOf(agentOfTurn(callId)).length);
}

/** A turn's id consists of its agent and its number: `agent#1`. The first turn is number 1. */
export function turnIdOf(agentId: string, number: number): string {
  return `${agentId}#${number}`;
}

export function agentOfTurn(turnId: string): string {
  const end = turnId.indexOf("#");
  return end < 0 ? turnId : turnId.slice(0, end);
}

/** The number of a turn within its agent, from 1. */
export function numberOfTurn(turnId: string): number {
  return Number(turnId.slice(turnId.indexOf("#") + 1));
}

/** `turn:step:index`; steps count from 1, the index from 0. */
export function callIdOf(turnId: string, step: number, index: number): string {
  return `${turnId}:${step}:${index}`;
}

/** The inverse of `callIdOf`. */
export function partsOfCall(callId: string): { turnId: string; step: number; index: number } {
  const last = callId.lastIndexOf(":");
  const before = callId.lastIndexOf(":", last - 1);
  return {
    turnId: callId.slice(0, before),
    step: Number(callId.slice(before + 1, last)),
    index: Number(callId.slice(last + 1)),
  };
}
