import { z } from "zod";
import {
  countSchema,
  flagSchema,
  integerOrNullSchema,
  integerSchema,
  optionalCountSchema,
  optionalPositiveSchema,
  optionalTextSchema,
  positiveSchema,
  textOrNullSchema,
  textSchema,
} from "../base/index.ts";
import type { DeepReadonly } from "../base/index.ts";
import { bindingSchema, limitsSchema } from "../budget/index.ts";
import { backgroundSchema, definitionRefSchema } from "./entry-parts.ts";
import { storedErrorSchema } from "./execution.ts";
import { jsonObjectSchema, jsonSchema } from "./json.ts";
import { sessionStubSchema } from "./session-stub.ts";
import { stopReasonSchema } from "./stop.ts";

export const agentKeySchema = z.object({ tenant: textSchema, agentId: textSchema });
export type AgentKey = DeepReadonly<z.infer<typeof agentKeySchema>>;

export const lifecycleSchema = z.enum(["created", "starting", "ready", "busy", "paused", "failed", "shutdown"]);
export type Lifecycle = DeepReadonly<z.infer<typeof lifecycleSchema>>;

/** A tool call that waits in a queue, or that a worker runs. */
export const queuedCallSchema = z.object({
  turnId: textSchema,
  step: positiveSchema,
  callId: textSchema,
  /** Counts from 1. */
  attempt: positiveSchema,
  queue: textSchema,
  /** Default 0. */
  priority: optionalCountSchema,
  /** Whether it may run again after its worker died. */
  isRepeatable: flagSchema,
  /** Milliseconds since the epoch. */
  addedAt: integerSchema,
  /** The process that runs it, or ran it last; `null` before the first run. */
  claimedBy: textOrNullSchema,
  /** Whether its outcome is in the agent's inbox. */
  isEnded: flagSchema,
});
export type QueuedCall = DeepReadonly<z.infer<typeof queuedCallSchema>>;

/** By `queuedCallKey`. */
export const queuedCallsSchema = z.record(textSchema, queuedCallSchema);
export type QueuedCalls = Readonly<Record<string, QueuedCall>>;

/** Identifies one attempt of a call within its agent. */
export function queuedCallKey({ callId, attempt }: { readonly callId: string; readonly attempt: number }): string {
  return `${callId}#${attempt}`;
}

/** A pause or an abort of one agent, set by a command; every intent checks the marks of all its ancestors. */
export const markSchema = z.object({ by: textSchema, at: integerSchema });
export type Mark = DeepReadonly<z.infer<typeof markSchema>>;

/** Kept until the aborted turn has ended. */
export const abortMarkSchema = markSchema.extend({ turnId: textSchema, reason: textSchema });
export type AbortMark = DeepReadonly<z.infer<typeof abortMarkSchema>>;

/** The state from which an activation continues instead of reading the complete history (docs/architecture.md). */
export const checkpointSchema = z.object({
  version: z.literal(1),
  /** Seq of the last folded entry. */
  seq: countSchema,
  /** Persisted snapshot of the agent machine. */
  agent: jsonSchema,
});
export type Checkpoint = DeepReadonly<z.infer<typeof checkpointSchema>>;

/** The fields of a record that only the owner's commits write. */
export const ownedFieldsSchema = z.object({
  status: lifecycleSchema,
  turnCount: countSchema,
  lastActivity: integerSchema,
  error: storedErrorSchema.nullable(),
  checkpoint: checkpointSchema.nullable(),
});
export type OwnedFields = DeepReadonly<z.infer<typeof ownedFieldsSchema>>;

/** The fields that commands change by compare-and-set, with or without a living owner. */
export const commandFieldsSchema = z.object({
  openTurnId: textOrNullSchema,
  queuedTurnIds: z.array(textSchema),
  nextTurnNumber: positiveSchema,
  pause: markSchema.nullable(),
  abort: abortMarkSchema.nullable(),
  /** Calls of the open turn that wait in a queue or were taken from one; `undefined` if there are none. */
  queued: queuedCallsSchema.optional(),
});
export type CommandFields = DeepReadonly<z.infer<typeof commandFieldsSchema>>;

/**
 * Where a forked tree left its origin. Every agent of the tree has it, also those that it spawns later: tools with an effect outside are
 * not run in a fork unless they are named here.
 */
export const forkedFromSchema = z.object({
  /** The root agent of the origin. */
  agentId: textSchema,
  /** The turn, from 1. */
  turn: positiveSchema,
  /** The fork continues before the model call of this step; `undefined` if it continues after the whole stored turn. */
  step: optionalPositiveSchema,
  /** The root of the first tree, if the origin is a fork itself: ids of subagents are derived from its id. */
  firstAgentId: optionalTextSchema,
  /** Tools that run although they have an effect outside. `undefined` if there are none. */
  allowed: z.array(textSchema).optional(),
});
export type ForkedFrom = DeepReadonly<z.infer<typeof forkedFromSchema>>;

/** The fields that are fixed when an agent is created. */
export const agentIdentitySchema = z.object({
  tenant: textSchema,
  agentId: textSchema,
  rootAgentId: textSchema,
  parentAgentId: textOrNullSchema,
  /** The parent's turn that spawned it. */
  parentTurnId: textOrNullSchema,
  /** The parent's step and call that wait for it; `null` if code spawned it. */
  parentStep: integerOrNullSchema,
  parentCallId: textOrNullSchema,
  /**
   * Set if the agent continues after the turn that spawned it; its end is then reported to the parent. `undefined` if it ends with that
   * turn.
   */
  background: backgroundSchema.optional(),
  depth: countSchema,
  definition: definitionRefSchema,
  ownerId: textOrNullSchema,
  sessionId: textOrNullSchema,
  createdAt: integerSchema,
  /** Its lifetime account, if there is one. */
  accountId: textOrNullSchema,
  /** The parent of its account: the account of the parent's turn. */
  parentAccountId: textOrNullSchema,
  /** The binding of the accounts above those of its turns; `undefined` if no limit binds. */
  binding: bindingSchema.optional(),
  /** Names of the tools it may use; `null` for all of its definition. Never more than the parent granted. */
  grantedTools: z.array(textSchema).nullable(),
  /** Names of tools that it and all its descendants may not use; `undefined` if there are none. */
  deniedTools: z.array(textSchema).optional(),
  /** The deepest level at which agents may still spawn. */
  maxDepth: countSchema,
  /** Limits of each of its turns, if the spawner set them. */
  turnLimits: limitsSchema.nullable(),
  metadata: jsonObjectSchema,
  /** Number of its first turn, if earlier ones ran elsewhere. Default 1. */
  firstTurnNumber: optionalPositiveSchema,
  /** `undefined` unless the tree is a fork. */
  forkedFrom: forkedFromSchema.optional(),
  /** The results that take the place of all its tools and of those of its descendants; `undefined` unless the session is stubbed. */
  stubs: z.array(sessionStubSchema).optional(),
});
export type AgentIdentity = DeepReadonly<z.infer<typeof agentIdentitySchema>>;

export const agentRecordSchema = agentIdentitySchema.extend({
  ...ownedFieldsSchema.shape,
  ...commandFieldsSchema.shape,
});
export type AgentRecord = DeepReadonly<z.infer<typeof agentRecordSchema>>;

export function newRecord(identity: AgentIdentity): AgentRecord {
  return {
    ...identity,
    status: "created",
    turnCount: 0,
    lastActivity: identity.createdAt,
    error: null,
    checkpoint: null,
    openTurnId: null,
    queuedTurnIds: [],
    nextTurnNumber: identity.firstTurnNumber ?? 1,
    pause: null,
    abort: null,
  };
}

/**
 * The status of an agent, derived from its record, for processes that do not run it. Its owner writes only the status at rest; whether it
 * is working, paused or resumed follows from the fields that commands write, which saves a write per turn.
 */
export function statusOf({
  status,
  openTurnId,
  pause,
  parentAgentId,
}: Pick<AgentRecord, "status" | "openTurnId" | "pause" | "parentAgentId">): Lifecycle {
  if (status === "starting" || status === "shutdown") return status;
  if (status === "created" && openTurnId === null) return status;
  // A mark above a child may hold it, which the child's own record does not show.
  if (status === "paused" && (pause !== null || parentAgentId !== null)) return status;
  if (openTurnId !== null) return "busy";
  if (pause !== null) return "paused";
  return status === "failed" ? "failed" : "ready";
}

/** `queued`: behind another turn of its agent. `open`: started, or about to start. The others have ended. */
export const turnStatusSchema = z.enum(["queued", "open", "completed", "stopped", "failed"]);

/** One turn of a root agent as listed by the stores. Times are in milliseconds since the epoch. */
export const turnRecordSchema = z.object({
  tenant: textSchema,
  agentId: textSchema,
  turnId: textSchema,
  number: positiveSchema,
  sessionId: textOrNullSchema,
  ownerId: textOrNullSchema,
  /** The key of the turn; `null` if there is none. */
  key: textOrNullSchema,
  status: turnStatusSchema,
  /** `null` until the turn has ended. */
  stopReason: stopReasonSchema.nullable(),
  /** When the turn was accepted. */
  openedAt: integerSchema,
  /** When the status last changed. */
  changedAt: integerSchema,
});
export type TurnRecord = DeepReadonly<z.infer<typeof turnRecordSchema>>;
