import { reportIdOf, reportMessage } from "../../actors/index.ts";
import type { ChildReportedItem, EntryOf } from "../../state/index.ts";
import type { Activation } from "./activation.ts";

/**
 * The end of a child in the background. In an open turn it waits for the next model call; between two turns its message
 * enters history at once, and where it calls for a turn one is opened by the same commit, unless one is coming already.
 */
export function takeReport(activation: Activation, item: ChildReportedItem): void {
  const { openTurnId } = activation;
  const { childId, childTurnId, name, outcome, stopReason, text, error, actorId, onEnd, leavesWork } = item;
  const body = {
    type: "child.reported",
    ...(openTurnId === null ? {} : { turnId: openTurnId }),
    childId,
    childTurnId,
    name,
    outcome,
    stopReason,
    text,
    error,
    messageId: reportIdOf(childTurnId),
    actorId,
    // Whoever ended it by hand wants quiet.
    wakes: onEnd === "wake" && stopReason !== "user_requested",
    ...(leavesWork ? { leavesWork } : {}),
  } as const;
  if (openTurnId !== null) {
    activation.append(body);
    return;
  }
  activation.append(body, {
    messages: [reportMessage(activation, body as unknown as EntryOf<"child.reported">, 1)],
    wake: body.wakes ? { childId, actorId } : undefined,
  });
}
