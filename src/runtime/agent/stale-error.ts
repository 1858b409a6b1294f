import { LeaseLostError, StoreRolledBackError } from "../../errors/index.ts";
import type { AgentKey } from "../../state/index.ts";
import type { Stale } from "../../stores/index.ts";

/**
 * Why an owner's commit was refused: somebody else has the agent, or the stores know less of it than its owner was told. An
 * epoch and a journal only grow, so the second is told as a warning, too.
 */
export function staleError(
  { agentId }: AgentKey,
  had: { readonly epoch: number; readonly seq: number },
  found: Stale,
): LeaseLostError {
  // Under an epoch of one's own nobody else writes, unless it was given a second time.
  const isTwice = found.epoch === had.epoch && found.seq > had.seq;
  if (found.epoch >= had.epoch && found.seq >= had.seq && !isTwice) {
    return new LeaseLostError(`agent ${agentId} was taken over under epoch ${found.epoch}`);
  }
  const message = `the stores have lost entries of agent ${agentId} that they had acknowledged: it was at seq ${had.seq} under epoch ${had.epoch}, and is stored at seq ${found.seq} under epoch ${found.epoch}; it goes on from there`;
  const details = { agentId, hadEpoch: had.epoch, hadSeq: had.seq, foundEpoch: found.epoch, foundSeq: found.seq };
  const cause = new StoreRolledBackError(message, { details });
  process.emitWarning(message, { code: "TROUPE_STORES_ROLLED_BACK" });
  return new LeaseLostError(message, { cause, details });
}
