import { z } from "zod";
import type { DeepReadonly } from "../base/index.ts";
import { jsonSchema } from "./json.ts";

/**
 * What a turn waits for: a person who approves a call, the caller who executes a tool of its own, a person who answers a
 * question, or credentials.
 */
export const requestKindSchema = z.enum(["approval", "client", "question", "auth"]);
export type RequestKind = DeepReadonly<z.infer<typeof requestKindSchema>>;

/**
 * How a request was decided. `approval`: approved, edited (approved with other arguments), rejected. `client` and
 * `question`: answered, rejected. `auth`: provided, rejected. Any of them may expire.
 */
export const requestVerdictSchema = z.enum(["approved", "edited", "rejected", "answered", "provided", "expired"]);
export type RequestVerdict = DeepReadonly<z.infer<typeof requestVerdictSchema>>;

/** A decision as it is stored. Credentials are never part of it (row L9). */
export const decisionSchema = z.object({
  verdict: requestVerdictSchema,
  /** Who decided; null: nobody, it expired. */
  by: z.string().nullable(),
  reason: z.string().nullable(),
  arguments: jsonSchema.optional(),
  result: z.object({ text: z.string(), isError: z.boolean() }).optional(),
});
export type Decision = DeepReadonly<z.infer<typeof decisionSchema>>;

/** Verdicts that each kind takes. */
export const verdictsOf: Readonly<Record<RequestKind, readonly RequestVerdict[]>> = {
  approval: ["approved", "edited", "rejected", "expired"],
  client: ["answered", "rejected", "expired"],
  question: ["answered", "rejected", "expired"],
  auth: ["provided", "rejected", "expired"],
};

/** A request as it is stored and listed. It is decided once: by a compare-and-set, whether or not an owner is alive. */
export const agentRequestSchema = z.object({
  tenant: z.string(),
  /** `<callId>:<n>`: it names its agent, and so its root. */
  requestId: z.string(),
  agentId: z.string(),
  /** Name of the agent's definition. */
  agentName: z.string(),
  rootAgentId: z.string(),
  turnId: z.string(),
  step: z.number().int().positive(),
  callId: z.string(),
  kind: requestKindSchema,
  /** Name of the tool. */
  name: z.string(),
  /** The validated arguments that are asked about. */
  arguments: jsonSchema,
  argumentsHash: z.string(),
  /** What is asked, in words for a person. */
  prompt: z.string(),
  /** Who started the turn. */
  actorId: z.string().nullable(),
  openedAt: z.number().int(),
  expiresAt: z.number().int().nullable(),
  /** `closed`: its turn went on without a decision. */
  status: z.enum(["open", "decided", "closed"]),
  decision: decisionSchema.nullable(),
  decidedAt: z.number().int().nullable(),
  /** Whoever opened it has a rule on who may decide it (`mayDecide`). Absent: no. */
  isGuarded: z.boolean().optional(),
});
export type AgentRequest = DeepReadonly<z.infer<typeof agentRequestSchema>>;

/** The n-th request of a call, from 1. */
export function requestIdOf(callId: string, number: number): string {
  return `${callId}:${number}`;
}

/** The call that a request belongs to: undo of `requestIdOf`. */
export function callOfRequest(requestId: string): string {
  return requestId.slice(0, requestId.lastIndexOf(":"));
}
