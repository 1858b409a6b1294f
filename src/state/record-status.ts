import type { Lifecycle } from "./lifecycle.ts";
import type { AgentRecord } from "./record.ts";

/**
 * What an agent is doing, as its record says it: for whoever does not run it himself. Its owner writes only how it comes to
 * rest; that it works, holds, or goes on again follows from what commands have written, without a further write per turn.
 *
 * | the owner wrote | open turn | pause mark | status |
 * |---|---|---|---|
 * | `created`, with no turn | | | `created` |
 * | `starting`, `shutdown` | | | the same |
 * | `paused` | | its own, or it has a parent | `paused` |
 * | `paused` | yes / no | none, and no parent | it was told to go on: `busy` / `ready` |
 * | anything else | yes | | `busy`, also while it comes to its rest |
 * | anything else | no | its own | `paused` |
 * | `failed` | no | none | `failed` |
 * | `ready`, `busy` | no | none | `ready` |
 */
export function statusOf({
  status,
  openTurnId,
  pause,
  parentAgentId,
}: Pick<AgentRecord, "status" | "openTurnId" | "pause" | "parentAgentId">): Lifecycle {
  if (status === "starting" || status === "shutdown") return status;
  if (status === "created" && openTurnId === null) return status;
  // A child may be held by a mark above it, which its own record does not show.
  if (status === "paused" && (pause !== null || parentAgentId !== null)) return status;
  if (openTurnId !== null) return "busy";
  if (pause !== null) return "paused";
  return status === "failed" ? "failed" : "ready";
}
