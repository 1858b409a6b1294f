import { InvalidInputError } from "../../errors/index.ts";
import type { AgentRecord } from "../../state/index.ts";

/** Where an agent stands among those that are listed newest first. It never moves. */
export type AgentPlace = Pick<AgentRecord, "createdAt" | "agentId">;

/** The place as a text, to continue a list of root agents in the order `newest` after it. */
export function placeOfAgent({ createdAt, agentId }: AgentPlace): string {
  return `${createdAt}:${agentId}`;
}

/** Throws `InvalidInputError` for a text that `placeOfAgent` does not give. */
export function agentAtPlace(text: string): AgentPlace {
  const [, createdAt, agentId] = /^(-?\d{1,16}):(.+)$/s.exec(text) ?? [];
  if (createdAt !== undefined && agentId !== undefined && Number.isSafeInteger(Number(createdAt)))
    return { createdAt: Number(createdAt), agentId };
  throw new InvalidInputError(
    `after is ${JSON.stringify(text)}; in the order "newest" it takes the place of a listed agent`,
  );
}

/** Newest first, those of one moment by their ids. */
export function byAge(one: AgentPlace, other: AgentPlace): number {
  if (one.createdAt !== other.createdAt) return other.createdAt - one.createdAt;
  if (one.agentId === other.agentId) return 0;
  return one.agentId < other.agentId ? -1 : 1;
}
