import { z } from "zod";
import {
  flagSchema,
  integerOrNullSchema,
  integerSchema,
  optionalFlagSchema,
  optionalTextSchema,
  positiveSchema,
  textOrNullSchema,
  textSchema,
} from "../base/index.ts";
import type { DeepReadonly } from "../base/index.ts";
import { limitNameSchema, limitsSchema } from "../budget/index.ts";
import { fileArtifactSchema } from "./call-end.ts";
import { jsonSchema } from "./json.ts";
import { filePartSchema, imagePartSchema } from "./message.ts";

/**
 * Why a turn waits: a person has to approve a call, the caller has to execute its own tool, a person has to answer a question, or
 * credentials are missing, or
 * a limit leaves no room for the next model call.
 */
export const requestKindSchema = z.enum(["approval", "client", "question", "auth", "budget"]);
export type RequestKind = DeepReadonly<z.infer<typeof requestKindSchema>>;

/**
 * The decision on a request. `approval`: approved, edited (approved with other arguments), rejected. `client` and
 * `question`: answered, rejected. `auth`: provided, rejected. `budget`: approved, edited (another amount), rejected. Any of them may expire.
 */
export const requestVerdictSchema = z.enum(["approved", "edited", "rejected", "answered", "provided", "expired"]);
export type RequestVerdict = DeepReadonly<z.infer<typeof requestVerdictSchema>>;

/** The result of the caller's tool, or a person's answer. */
export const answerResultSchema = z.object({
  text: textSchema,
  isError: flagSchema,
  images: z.array(imagePartSchema).optional(),
  files: z.array(filePartSchema).optional(),
  /** The content of its files, which the owner of the agent saves. */
  artifacts: z.array(fileArtifactSchema).optional(),
  /** The result as data, for programs. */
  structured: jsonSchema.optional(),
});

/** A stored decision. It never contains credentials. */
export const decisionSchema = z.object({
  verdict: requestVerdictSchema,
  /** The person who decided; `null` if the request expired. */
  by: textOrNullSchema,
  reason: textOrNullSchema,
  arguments: jsonSchema.optional(),
  result: answerResultSchema.optional(),
});
export type Decision = DeepReadonly<z.infer<typeof decisionSchema>>;

/** The decision for readers: the files of its result are named, and their contents are read as artifacts of the agent. */
export function withoutContents(decision: Decision): Decision {
  if (decision.result?.artifacts === undefined) return decision;
  const { artifacts: _contents, ...result } = decision.result;
  return { ...decision, result };
}

/** The verdicts that each kind allows. */
export const verdictsOf: Readonly<Record<RequestKind, readonly RequestVerdict[]>> = {
  approval: ["approved", "edited", "rejected", "expired"],
  client: ["answered", "rejected", "expired"],
  question: ["answered", "rejected", "expired"],
  auth: ["provided", "rejected", "expired"],
  budget: ["approved", "edited", "rejected", "expired"],
};

/** A request as stored and listed. It is decided once, by compare-and-set, with or without a living owner. */
export const agentRequestSchema = z.object({
  tenant: textSchema,
  /** `<callId>:<n>`: it contains the id of its agent, and thereby of the root. */
  requestId: textSchema,
  agentId: textSchema,
  /** Name of the agent's definition. */
  agentName: textSchema,
  /** The owner of the agent; `undefined` if it has none. */
  ownerId: optionalTextSchema,
  rootAgentId: textSchema,
  turnId: textSchema,
  step: positiveSchema,
  callId: textSchema,
  kind: requestKindSchema,
  /** Name of the tool. */
  name: textSchema,
  /** The validated arguments in question. */
  arguments: jsonSchema,
  argumentsHash: textSchema,
  /** The question for a person. */
  prompt: textSchema,
  /** The actor who started the turn. */
  actorId: textOrNullSchema,
  openedAt: integerSchema,
  expiresAt: integerOrNullSchema,
  /** `closed`: its turn continued without a decision. */
  status: z.enum(["open", "decided", "closed"]),
  decision: decisionSchema.nullable(),
  decidedAt: integerOrNullSchema,
  /**
   * The key of its decision, and the turn of the root agent at that time: the open one, else the last. `undefined` if it was decided
   * without a key, or is not decided.
   */
  decidedWith: z.object({ key: textSchema, turnId: textSchema }).optional(),
  /** `true` if the tool's own code asked during the call: that code gets the decision. */
  isAsked: optionalFlagSchema,
  /** `true` if the runtime that opened it has a rule about who may decide (`mayDecide`). */
  isGuarded: optionalFlagSchema,
});
/** A request that waits for a person, a client or credentials. */
export type AgentRequest = DeepReadonly<z.infer<typeof agentRequestSchema>>;

/** What a request for more budget shows, and the amount that its approval adds, in dollars for the cost. */
export const budgetQuestionSchema = z.object({
  accountId: textSchema,
  limit: limitNameSchema,
  add: z.number().positive(),
});
export type BudgetQuestion = DeepReadonly<z.infer<typeof budgetQuestionSchema>>;

/** The decision on a request for more budget. `limits`: the amounts that it adds, as stored; absent if it was rejected. */
export const budgetDecisionSchema = z.object({
  requestId: textSchema,
  callId: textSchema,
  name: textSchema,
  verdict: requestVerdictSchema,
  by: textOrNullSchema,
  reason: textOrNullSchema,
  accountId: textSchema,
  limits: limitsSchema.optional(),
  /** The amount in place of the proposed one, in dollars for the cost. */
  amount: z.number().optional(),
});
export type BudgetDecision = DeepReadonly<z.infer<typeof budgetDecisionSchema>>;

/** The n-th request of a call, from 1. */
export function requestIdOf(callId: string, number: number): string {
  return `${callId}:${number}`;
}

/** The call that a request belongs to: the inverse of `requestIdOf`. */
export function callOfRequest(requestId: string): string {
  return requestId.slice(0, requestId.lastIndexOf(":"));
}
