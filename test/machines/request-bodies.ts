import {
  type EntryBody,
  type EntryOf,
  type RequestKind,
  requestIdOf,
  type RequestVerdict,
} from "../../src/state/index.ts";
import { callIdAt, turnId } from "./bodies.ts";

/** Entries of requests to people, like those in `bodies.ts`. */
type Body<Type extends EntryBody["type"]> = Extract<EntryBody, { type: Type }>;

/** The n-th request of a call of the first round. */
export function requestOpened(kind: RequestKind = "approval", index = 0, number = 1): Body<"request.opened"> {
  const callId = callIdAt(index);
  return {
    type: "request.opened",
    turnId,
    step: 1,
    callId,
    requestId: requestIdOf(callId, number),
    kind,
    name: "look",
    argumentsHash: "a",
    prompt: "may it look?",
    expiresAt: null,
  };
}

export function requestDecided(
  verdict: RequestVerdict = "approved",
  kind: RequestKind = "approval",
  index = 0,
  number = 1,
): Body<"request.decided"> {
  const callId = callIdAt(index);
  const parts: Partial<EntryOf<"request.decided">> =
    verdict === "edited"
      ? { arguments: { q: 2 } }
      : verdict === "answered"
        ? { result: { text: "blue", isError: false } }
        : {};
  return {
    type: "request.decided",
    turnId,
    step: 1,
    callId,
    requestId: requestIdOf(callId, number),
    kind,
    name: "look",
    verdict,
    by: verdict === "expired" ? null : "ann",
    reason: null,
    ...parts,
  };
}

export function turnWaiting(...requestIds: string[]): Body<"turn.waiting"> {
  return { type: "turn.waiting", turnId, requestIds };
}
