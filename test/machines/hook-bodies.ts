import type { EntryBody, EntryOf } from "../../src/state/index.ts";
import { callIdAt, turnId } from "./bodies.ts";

/** Entries of hooks, of checked output and of the model's context, like those in `bodies.ts`. */
type Body<Type extends EntryBody["type"]> = Extract<EntryBody, { type: Type }>;

export function hooksSettled(phase: EntryOf<"hooks.settled">["phase"], step = 1): Body<"hooks.settled"> {
  return { type: "hooks.settled", turnId, step, phase };
}

/** A hook that reviewed one call's result. */
export function callHookApplied(
  hook: "afterEachTool" | "onError",
  index = 0,
  stop: EntryOf<"hook.applied">["patch"]["stop"] = null,
): Body<"hook.applied"> {
  const patch = { addedMessageIds: [], edited: [], removedMessageIds: [], stop, continueRequested: false };
  return { type: "hook.applied", turnId, step: 1, callId: callIdAt(index), hook, plugin: "agent", index: 0, patch };
}

export function callReviewed(index = 0, step = 1): Body<"call.reviewed"> {
  return { type: "call.reviewed", turnId, step, callId: callIdAt(index, step) };
}

export function messagesReleased(...messageIds: string[]): Body<"messages.released"> {
  return { type: "messages.released", turnId, messageIds };
}

/** `repair`: the output did not fit and the model is asked again; `misfit`: it did not fit at the last attempt. */
export function outputChecked(how: "fits" | "repair" | "misfit", step = 1): Body<"output.checked"> {
  const place = { type: "output.checked", turnId, step, messageId: `${turnId}:${step}` } as const;
  if (how === "fits") return { ...place, valid: true, value: { ok: true } };
  const misfit = { ...place, valid: false, issues: "ok is missing" };
  return how === "misfit" ? misfit : { ...misfit, repairMessageId: `${turnId}:${step}:repair` };
}

export function contextCompacted(step = 1, summaryMessageId: string | null = null): Body<"context.compacted"> {
  const dropped = { through: "old", kept: [], messages: 3 };
  return { type: "context.compacted", turnId, step, strategy: "dropOldest", summaryMessageId, ...dropped };
}

export function contextExpanded(size = 20, index = 0): Body<"context.expanded"> {
  return { type: "context.expanded", turnId, step: 1, callId: callIdAt(index), size };
}

export function contextLoaded(callIds: string[], index = 0): Body<"context.loaded"> {
  return { type: "context.loaded", turnId, step: 1, callId: callIdAt(index), callIds };
}

export const cleared: Body<"conversation.cleared"> = { type: "conversation.cleared", by: "user", scope: "all" };
