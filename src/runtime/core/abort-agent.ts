import type { AgentKey } from "../../state/index.ts";
import type { Stores } from "../../stores/index.ts";

interface AbortPlace {
  readonly stores: Stores;
  readonly clock: { now(): number };
  keyOf(agentId: string): AgentKey;
  /** Somebody posted to these agents. */
  notify(agentIds: readonly string[]): void;
  assertOpen(): void;
}

/** Ends a turn of an agent, or whichever is open, for a user; whoever runs it hears of it. */
export async function abortAgent(
  place: AbortPlace,
  agentId: string,
  turnId: string | null,
  reason: string,
): Promise<void> {
  place.assertOpen();
  const command = { turnId, by: "user", reason, stopReason: "user_requested" } as const;
  const outcome = await place.stores.abort(place.keyOf(agentId), command, place.clock.now());
  if (outcome.type !== "notFound") place.notify(outcome.posted);
}
