import { z } from "zod";
import type { DeepReadonly } from "../base/index.ts";
import { jsonSchema } from "./json.ts";

/**
 * The cause of a turn's wait: a person has to approve a call, the caller has to execute its own tool, a person has to
 * answer a question, or credentials are missing.
 */
export const requestKindSchema = z.enum(["approval", "client", "question", "auth"]);
export type RequestKind = DeepReadonly<z.infer<typeof requestKindSchema>>;

/**
 * The decision on a request. `approval`: approved, edited (approved with other arguments), rejected. `client` and
 * `question`: answered, rejected. `auth`: provided, rejected. Any of them may expire.
 */
export const requestVerdictSchema = z.enum(["approved", "edited", "rejected", "answered", "provided", "expired"]);
export type RequestVerdict = DeepReadonly<z.infer<typeof requestVerdictSchema>>;

/** A decision as it is stored. Credentials are never part of it (row L9). */
export const decisionSchema = z.object({
  verdict: requestVerdictSchema,
  /** The person who decided; null: nobody, it expired. */
  by: z.string().nullable(),
  reason: z.string().nullable(),
  arguments: jsonSchema.optional(),
  result: z.object({ text: z.string(), isError: z.boolean() }).optional(),
});
export type Decision = DeepReadonly<z.infer<typeof decisionSchema>>;

/** The verdicts that each kind allows. */
export const verdictsOf: Readonly<Record<RequestKind, readonly RequestVerdict[]>> = {
  approval: ["approved", "edited", "rejected", "expired"],
  client: ["answered", "rejected", "expired"],
  question: ["answered", "rejected", "expired"],
  auth: ["provided", "rejected", "expired"],
};

/** A request as it is stored and listed. It is decided once, by a compare-and-set, with or without a living owner. */
export const agentRequestSchema = z.object({
  tenant: z.string(),
  /** `<callId>:<n>`: it contains the id of its agent, and so of the root. */
  requestId: z.string(),
  agentId: z.string(),
  /** Name of the agent's definition. */
  agentName: z.string(),
  /** The owner of the agent. Absent: it has none. */
  ownerId: z.string().optional(),
  rootAgentId: z.string(),
  turnId: z.string(),
  step: z.number().int().positive(),
  callId: z.string(),
  kind: requestKindSchema,
  /** Name of the tool. */
  name: z.string(),
  /** The validated arguments in question. */
  arguments: jsonSchema,
  argumentsHash: z.string(),
  /** The question, in words for a person. */
  prompt: z.string(),
  /** The actor who started the turn. */
  actorId: z.string().nullable(),
  openedAt: z.number().int(),
  expiresAt: z.number().int().nullable(),
  /** `closed`: its turn went on without a decision. */
  status: z.enum(["open", "decided", "closed"]),
  decision: decisionSchema.nullable(),
  decidedAt: z.number().int().nullable(),
  /**
   * The key that its decision was made with, and the turn of the root agent at that time: the open one, else the last.
   * Absent: it was decided without a key, or is not decided.
   */
  decidedWith: z.object({ key: z.string(), turnId: z.string() }).optional(),
  /** The tool's own code has asked, while the call ran: it gets the decision. Absent: no. */
  isAsked: z.boolean().optional(),
  /** The runtime that opened it has a rule on who may decide (`mayDecide`). Absent: no. */
  isGuarded: z.boolean().optional(),
});
export type AgentRequest = DeepReadonly<z.infer<typeof agentRequestSchema>>;

/** The n-th request of a call, from 1. */
export function requestIdOf(callId: string, number: number): string {
  return `${callId}:${number}`;
}

/** The call that a request belongs to: the inverse of `requestIdOf`. */
export function callOfRequest(requestId: string): string {
  return requestId.slice(0, requestId.lastIndexOf(":"));
}
