import { z } from "zod";
import type { Entry } from "./entry.ts";
import { gateVerdictSchema } from "./entry-parts.ts";
import { callOutcomeSchema } from "./execution.ts";
import { jsonSchema } from "./json.ts";
import { partsOfCall } from "./identity.ts";

/** Everything pure code knows about one tool call: the fold of its entries, and the context of its machine. */
export const callStateSchema = z.object({
  callId: z.string(),
  turnId: z.string(),
  step: z.number().int().positive(),
  index: z.number().int().nonnegative(),
  name: z.string(),
  gate: z
    .object({
      verdict: gateVerdictSchema,
      kind: z.enum(["function", "subagent", "internal"]),
      effect: z.enum(["none", "keyed", "once"]),
      arguments: jsonSchema,
      message: z.string().nullable(),
    })
    .nullable(),
  /** Attempts that were granted. */
  attempt: z.number().int().nonnegative(),
  /** Epoch of the granted attempt that has no outcome; null: none is under way. */
  startedEpoch: z.number().int().nullable(),
  startedAt: z.number().int().nullable(),
  retryAt: z.number().int().nullable(),
  childId: z.string().nullable(),
  childResult: z.object({ outcome: z.string(), stopReason: z.string(), text: z.string() }).nullable(),
  /** Why its intent was refused, until it is asked again. */
  refusal: z.object({ reason: z.string(), accountId: z.string().nullable(), limit: z.string().nullable() }).nullable(),
  outcome: callOutcomeSchema.nullable(),
});
export type CallState = z.infer<typeof callStateSchema>;

export function declareCall(callId: string, name: string): CallState {
  const { turnId, step, index } = partsOfCall(callId);
  return {
    callId,
    turnId,
    step,
    index,
    name,
    gate: null,
    attempt: 0,
    startedEpoch: null,
    startedAt: null,
    retryAt: null,
    childId: null,
    childResult: null,
    refusal: null,
    outcome: null,
  };
}

/** The call after one more entry of its address. */
export function foldCall(call: CallState, entry: Entry): CallState {
  switch (entry.type) {
    case "call.gated": {
      const { verdict, kind, effect, message } = entry;
      return { ...call, gate: { verdict, kind, effect, arguments: entry.arguments, message } };
    }
    case "tool.started":
      return {
        ...call,
        attempt: entry.attempt,
        startedEpoch: entry.epoch,
        startedAt: call.startedAt ?? entry.at,
        retryAt: null,
        refusal: null,
      };
    case "tool.retrying":
      return { ...call, startedEpoch: null, retryAt: entry.retryAt };
    case "child.spawned":
      return { ...call, childId: entry.childId, startedAt: entry.at, refusal: null };
    case "child.ended":
      return { ...call, childResult: { outcome: entry.outcome, stopReason: entry.stopReason, text: entry.text } };
    case "intent.refused": {
      if (entry.intent === "generate.requested") return call;
      const { reason, accountId = null, limit = null } = entry;
      return { ...call, refusal: { reason, accountId, limit } };
    }
    case "agent.resumed":
      return { ...call, refusal: null };
    case "tool.settled":
      return { ...call, outcome: entry.outcome, startedEpoch: null };
    default:
      return call;
  }
}
