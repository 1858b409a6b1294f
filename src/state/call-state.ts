import type { Entry, EntryOf } from "./entry.ts";
import { z } from "zod";
import {
  countSchema,
  flagSchema,
  integerOrNullSchema,
  positiveSchema,
  textOrNullSchema,
  textSchema,
} from "../base/index.ts";
import type { DeepReadonly } from "../base/index.ts";
import { orderedSpawnSchema } from "./call-end.ts";
import { gateVerdictSchema, toolKindSchema } from "./entry-parts.ts";
import { callOutcomeSchema } from "./execution.ts";
import { type Json, jsonSchema } from "./json.ts";
import { partsOfCall } from "./agent-ids.ts";
import { decisionSchema, requestKindSchema } from "./request.ts";
import { hookKeyOf } from "./turn-state.ts";

/** All data that pure code has about one tool call: the fold of its entries, and the context of its machine. */
export const callStateSchema = z.object({
  callId: textSchema,
  turnId: textSchema,
  step: positiveSchema,
  index: countSchema,
  name: textSchema,
  gate: z
    .object({
      verdict: gateVerdictSchema,
      kind: toolKindSchema,
      effect: z.enum(["none", "keyed", "once"]),
      arguments: jsonSchema,
      /** Empty if the call cannot need an approval. */
      argumentsHash: textSchema,
      needsApproval: flagSchema,
      message: textOrNullSchema,
    })
    .nullable(),
  /** Number of granted attempts. */
  attempt: countSchema,
  /** Epoch of the granted attempt without an outcome; `null` if there is none, or if it is in a queue. */
  startedEpoch: integerOrNullSchema,
  startedAt: integerOrNullSchema,
  retryAt: integerOrNullSchema,
  /** The queue whose workers run the latest attempt; `null` if it is in no queue. */
  queue: textOrNullSchema,
  /** Children that a queued tool has ordered, and the one that provides its result. */
  ordered: z.object({ spawns: z.array(orderedSpawnSchema), awaits: textSchema, prefix: textOrNullSchema }).nullable(),
  childId: textOrNullSchema,
  childResult: z.object({ outcome: textSchema, stopReason: textSchema, text: textSchema }).nullable(),
  /** Whether its child runs in the background; the result is then the child's id. */
  isBackground: flagSchema,
  /** The text that precedes the answer of the child that provides the result. */
  prefix: textOrNullSchema,
  /** The background children that it waits for: all of them, and those that are still open. */
  wait: z
    .object({ childIds: z.array(textSchema), openIds: z.array(textSchema), for: z.enum(["all", "any"]) })
    .nullable(),
  /** Why its intent was refused; `null` once it is proposed again. */
  refusal: z.object({ reason: textSchema, accountId: textOrNullSchema, limit: textOrNullSchema }).nullable(),
  /** Number of requests that were opened for it. */
  requests: countSchema,
  /** The request that it waits for. `asked`: the tool's own code asked, and gets the decision. */
  openRequest: z
    .object({ requestId: textSchema, kind: requestKindSchema, argumentsHash: textSchema, asked: flagSchema })
    .nullable(),
  /** The last decision, with its request; valid until the call continues. */
  decision: decisionSchema.extend({ requestId: textSchema, kind: requestKindSchema, asked: flagSchema }).nullable(),
  /** The last progress that the tool's code noted; `null` if there is none. */
  note: jsonSchema,
  /** Hash of the arguments that a person approved: only these may run. */
  approvedHash: textOrNullSchema,
  outcome: callOutcomeSchema.nullable(),
  /** Whether hooks have to review its result. */
  reviewDue: flagSchema,
  /** The hooks that have reviewed it, as `hook:index`. */
  reviews: z.array(textSchema),
});
export type CallState = DeepReadonly<z.infer<typeof callStateSchema>>;
export type CallGate = NonNullable<CallState["gate"]>;

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
    queue: null,
    ordered: null,
    childId: null,
    childResult: null,
    isBackground: false,
    prefix: null,
    wait: null,
    refusal: null,
    requests: 0,
    openRequest: null,
    decision: null,
    note: null,
    approvedHash: null,
    outcome: null,
    reviewDue: false,
    reviews: [],
  };
}

/** The call after one more of its entries. */
export function foldCall(call: CallState, entry: Entry): CallState {
  switch (entry.type) {
    case "call.gated": {
      // Edited arguments are gated again; the edit counts as their approval.
      const approvedHash = call.decision?.verdict === "edited" ? entry.argumentsHash : call.approvedHash;
      const gate = gateToldBy(entry) ?? null;
      const decision = call.decision?.verdict === "edited" ? null : call.decision;
      return { ...call, gate, approvedHash, decision };
    }
    case "tool.started":
      return {
        ...call,
        gate: gateToldBy(entry) ?? call.gate,
        attempt: entry.attempt,
        // An attempt in a queue has no epoch, because the owner runs none of its code.
        startedEpoch: entry.queue === undefined ? entry.epoch : null,
        startedAt: call.startedAt ?? entry.at,
        retryAt: entry.queue === undefined ? null : call.retryAt,
        queue: entry.queue ?? null,
        refusal: null,
      };
    case "tool.retrying":
      return { ...call, startedEpoch: null, queue: null, retryAt: entry.retryAt };
    case "tool.noted":
      return { ...call, note: entry.note };
    case "child.spawned":
      return {
        ...call,
        childId: entry.childId,
        isBackground: entry.background !== undefined,
        startedAt: entry.at,
        refusal: null,
      };
    case "child.ended":
      if (!isItsChild(call, entry)) return call;
      return { ...call, childResult: { outcome: entry.outcome, stopReason: entry.stopReason, text: entry.text } };
    case "child.ordered": {
      const { spawns, awaits, prefix = null } = entry;
      return { ...call, ordered: { spawns, awaits, prefix }, queue: null, retryAt: null };
    }
    case "child.awaited":
      return { ...call, childId: entry.childId, prefix: entry.prefix ?? null, startedEpoch: null };
    case "call.waiting": {
      const { childIds, openIds } = entry;
      return { ...call, wait: { childIds, openIds, for: entry.for }, startedEpoch: null };
    }
    case "child.reported":
      if (!call.wait?.openIds.includes(entry.childId)) return call;
      return { ...call, wait: { ...call.wait, openIds: call.wait.openIds.filter((id) => id !== entry.childId) } };
    case "intent.refused": {
      if (entry.intent === "generate.requested") return call;
      const { reason, accountId = null, limit = null } = entry;
      return { ...call, gate: gateToldBy(entry) ?? call.gate, refusal: { reason, accountId, limit } };
    }
    case "agent.resumed":
      return { ...call, refusal: null };
    case "request.opened": {
      const { requestId, kind, argumentsHash, asked = false } = entry;
      return {
        ...call,
        // The code that asked has ended.
        startedEpoch: asked ? null : call.startedEpoch,
        requests: call.requests + 1,
        openRequest: { requestId, kind, argumentsHash, asked },
        decision: null,
        refusal: null,
      };
    }
    case "request.decided":
      return decided(call, entry);
    case "tool.settled":
      return {
        ...call,
        outcome: entry.outcome,
        startedEpoch: null,
        queue: null,
        openRequest: null,
        reviewDue: entry.reviewDue ?? false,
      };
    case "hook.applied":
      return { ...call, reviews: [...call.reviews, hookKeyOf(entry.hook, entry.index)] };
    case "call.reviewed":
      return { ...call, reviewDue: false };
    default:
      return call;
  }
}

/**
 * The gate of a call in an entry: `call.gated`, or the first intent to run a call that is gated only by its schema, granted or refused.
 */
export function gateToldBy(entry: Entry): CallGate | undefined {
  switch (entry.type) {
    case "call.gated": {
      const { verdict, kind, effect, argumentsHash, needsApproval = false, message } = entry;
      return { verdict, kind, effect, arguments: entry.arguments, argumentsHash, needsApproval, message };
    }
    case "tool.started":
      return entry.arguments === undefined ? undefined : openGate(entry.effect, entry.arguments);
    case "intent.refused":
      if (entry.arguments === undefined || entry.effect === undefined) return undefined;
      return openGate(entry.effect, entry.arguments);
    default:
      return undefined;
  }
}

/** The gate of a function call that is gated only by the schema of its arguments. */
export function openGate(effect: CallGate["effect"], args: Json): CallGate {
  return {
    verdict: "allowed",
    kind: "function",
    effect,
    arguments: args,
    argumentsHash: "",
    needsApproval: false,
    message: null,
  };
}

/** Whether the entry ends the call's child: the one that the call spawned, or the one that provides its result. */
export function isItsChild(call: CallState, { callId, childId }: EntryOf<"child.ended">): boolean {
  return call.outcome === null && (callId === call.callId || childId === call.childId);
}

/** Whether the call no longer waits for children, or never did. */
export function isWaitOver({ wait }: CallState): boolean {
  if (!wait) return true;
  return wait.for === "any" ? wait.openIds.length < wait.childIds.length : wait.openIds.length === 0;
}

function decided(call: CallState, entry: EntryOf<"request.decided">): CallState {
  if (call.openRequest?.requestId !== entry.requestId) return call;
  const { requestId, kind, verdict, by, reason, arguments: edited, result } = entry;
  const { asked, argumentsHash } = call.openRequest;
  const decision = {
    requestId,
    kind,
    asked,
    verdict,
    by,
    reason,
    ...(edited === undefined ? {} : { arguments: edited }),
    ...(result === undefined ? {} : { result }),
  };
  // A decision on a question of the tool's code does not approve the call itself.
  const approvedHash = verdict === "approved" && !asked ? argumentsHash : call.approvedHash;
  return { ...call, openRequest: null, decision, approvedHash };
}

/** How many children of one definition a turn may run at a time. */
export interface SpawnLimit {
  /** Name of their definition. */
  readonly childName: string;
  readonly maxConcurrent: number;
}

/**
 * The children that count towards their definition's limit: those that have not ended, including proposed ones if `entries` contain
 * undecided entries. A refusal replaces its entry, so a refused child does not count. Background children have another limit, which is
 * checked elsewhere.
 */
export function childrenAtWork(entries: readonly Entry[], childName: string): string[] {
  const atWork = new Set<string>();
  for (const entry of entries) {
    if (entry.type === "child.spawned" && entry.definition.name === childName && !entry.background) {
      atWork.add(entry.childId);
    }
    if (entry.type === "child.ended") atWork.delete(entry.childId);
  }
  return [...atWork];
}

/**
 * Whether a call waits until another child of its definition ends. It does nothing in the meantime, so the turn may rest. Once the limit
 * allows it, the call counts as active, even before an entry shows it.
 */
export function isQueuedToSpawn(call: CallState, entries: readonly Entry[], limit: SpawnLimit | undefined): boolean {
  if (!limit || call.outcome !== null || call.childId !== null) return false;
  const { gate, approvedHash } = call;
  // A call that needs approval opens its request first.
  if (gate?.verdict !== "allowed" || (gate.needsApproval && approvedHash === null)) return false;
  return childrenAtWork(entries, limit.childName).length >= limit.maxConcurrent;
}
