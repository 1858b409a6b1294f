import { saveArtifacts, settleEnded } from "../../actors/index.ts";
import { backoffDelay } from "../../base/index.ts";
import type { CallEndedItem } from "../../state/index.ts";
import type { Activation } from "./activation.ts";

/**
 * What became of a queued call, as whoever ran it tells: plain facts, since all that user code had to decide is decided. The
 * end of an attempt that is over already changes nothing. False: what was appended of the call has not been taken in yet.
 */
export function takeCallEnd(activation: Activation, item: CallEndedItem): boolean {
  const { turnId, callId, step, attempt, end } = item;
  if (activation.openTurnId !== turnId) return true;
  if (activation.undelivered().some((entry) => "callId" in entry && entry.callId === callId)) return false;
  const call = activation.call(turnId, callId);
  if (!call || call.outcome !== null || call.queue === null || call.attempt !== attempt) return true;
  switch (end.type) {
    case "settled":
      settleEnded(activation, call, end);
      break;
    case "retrying": {
      const retryAt = activation.clock.now() + backoffDelay(attempt, activation.random());
      activation.append({ type: "tool.retrying", turnId, step, callId, attempt, error: end.error, retryAt });
      break;
    }
    case "ordered": {
      const { spawns, awaits, prefix } = end;
      saveArtifacts(activation, call, end.artifacts ?? []);
      const before = prefix === undefined ? {} : { prefix };
      activation.append({ type: "child.ordered", turnId, step, callId, spawns, awaits, ...before });
      break;
    }
    // Who has taken it back gives it its result.
    case "withdrawn":
      break;
    default:
      end satisfies never;
  }
  return true;
}
