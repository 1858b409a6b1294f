import { z } from "zod";
import type { DeepReadonly } from "../base/index.ts";
import { bindingSchema, limitsSchema } from "../budget/index.ts";
import { backgroundSchema, definitionRefSchema } from "./entry-parts.ts";
import { storedErrorSchema } from "./execution.ts";
import { jsonObjectSchema, jsonSchema } from "./json.ts";
import { lifecycleSchema } from "./lifecycle.ts";
import { queuedCallsSchema } from "./queued-call.ts";

/** A wish set on one agent by a command; every intent reads those of all its ancestors. */
export const markSchema = z.object({ by: z.string(), at: z.number().int() });
export type Mark = DeepReadonly<z.infer<typeof markSchema>>;

/** Stands as long as the turn it ends is open. */
export const abortMarkSchema = markSchema.extend({ turnId: z.string(), reason: z.string() });
export type AbortMark = DeepReadonly<z.infer<typeof abortMarkSchema>>;

/** What activation starts from, so that it never reads the whole history (design, Machines). */
export const checkpointSchema = z.object({
  version: z.literal(1),
  /** The last entry that is folded in. */
  seq: z.number().int().nonnegative(),
  /** Persisted snapshot of the agent machine. */
  agent: jsonSchema,
});
export type Checkpoint = DeepReadonly<z.infer<typeof checkpointSchema>>;

/** The part of a record that only the owner's commits write. */
export const ownedFieldsSchema = z.object({
  status: lifecycleSchema,
  turnCount: z.number().int().nonnegative(),
  lastActivity: z.number().int(),
  error: storedErrorSchema.nullable(),
  checkpoint: checkpointSchema.nullable(),
});
export type OwnedFields = DeepReadonly<z.infer<typeof ownedFieldsSchema>>;

/** The part that commands change by compare-and-set, with or without a living owner. */
export const commandFieldsSchema = z.object({
  openTurnId: z.string().nullable(),
  queuedTurnIds: z.array(z.string()),
  nextTurnNumber: z.number().int().positive(),
  pause: markSchema.nullable(),
  abort: abortMarkSchema.nullable(),
  /** Calls of the open turn that have to be run from a queue, or are. Absent: none. */
  queued: queuedCallsSchema.optional(),
});
export type CommandFields = DeepReadonly<z.infer<typeof commandFieldsSchema>>;

/** What is fixed when an agent is made. */
export const agentIdentitySchema = z.object({
  tenant: z.string(),
  agentId: z.string(),
  rootAgentId: z.string(),
  parentAgentId: z.string().nullable(),
  /** The parent's turn under which it was spawned. */
  parentTurnId: z.string().nullable(),
  /** The parent's step and call that wait for it; null when code spawned it. */
  parentStep: z.number().int().nullable(),
  parentCallId: z.string().nullable(),
  /** It goes on when the turn that spawned it ends, and its end is reported to the agent. Absent: it belongs to that turn. */
  background: backgroundSchema.optional(),
  depth: z.number().int().nonnegative(),
  definition: definitionRefSchema,
  ownerId: z.string().nullable(),
  sessionId: z.string().nullable(),
  createdAt: z.number().int(),
  /** Account of its lifetime, where it has one. */
  accountId: z.string().nullable(),
  /** Account above its own: the parent's turn. */
  parentAccountId: z.string().nullable(),
  /** What binds on the accounts above those of its turns. Absent: nothing. */
  binding: bindingSchema.optional(),
  /** Names of the tools it may use; null: all its definition has. Never more than the parent granted (row S8). */
  grantedTools: z.array(z.string()).nullable(),
  /** Names of tools that policies above it withhold: nothing below it is granted them either. Absent: none. */
  deniedTools: z.array(z.string()).optional(),
  /** Deepest level at which it may still spawn. */
  maxDepth: z.number().int().nonnegative(),
  /** Limits of each of its turns, where the spawner set them. */
  turnLimits: limitsSchema.nullable(),
  metadata: jsonObjectSchema,
  /** Number of its first turn, where earlier ones were run elsewhere. Default 1. */
  firstTurnNumber: z.number().int().positive().optional(),
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
