import { z } from "zod";
import type { DeepReadonly } from "../../base/index.ts";
import { limitNameSchema } from "../../budget/index.ts";
import type { LimitStop, Spending, Turn, TurnResult, SteerAnswer } from "../../runtime/index.ts";
import {
  contentSchema,
  jsonObjectSchema,
  jsonSchema,
  modelRequestSchema,
  numberOfTurn,
  stopReasonSchema,
  storedErrorSchema,
  type TurnRecord,
  usageSchema,
  type AgentRequest,
  agentRequestSchema,
  withoutContents,
} from "../../state/index.ts";
import { budgetSchema, milliseconds } from "./agent-json.ts";
import { outputOf } from "../core/turn-events.ts";

/* Requests to people and clients in this API, and the body that decides one. */

export const requestSchema = agentRequestSchema
  .omit({ tenant: true, ownerId: true, isGuarded: true, decidedWith: true })
  .meta({
    id: "Request",
    description: "A request that a turn waits for: an approval, an answer, a client's tool, credentials.",
  });
export type RequestJson = DeepReadonly<z.infer<typeof requestSchema>>;

export function requestJson(request: AgentRequest): RequestJson {
  const { tenant: _tenant, ownerId: _ownerId, isGuarded: _isGuarded, decidedWith: _decidedWith, ...shown } = request;
  return shown.decision === null ? shown : { ...shown, decision: withoutContents(shown.decision) };
}

export const decisionBodySchema = z
  .strictObject({
    verdict: z.enum(["approved", "edited", "rejected", "answered", "provided"]).meta({
      description: "Of an approval: approved, edited, rejected. Of a question or client tool: answered, rejected.",
    }),
    arguments: jsonSchema.optional().meta({ description: "For `edited`: replaces the model's arguments." }),
    result: jsonSchema.optional().meta({ description: "For `answered`: the answer, or the tool's result." }),
    isError: z
      .boolean()
      .optional()
      .meta({ description: "For `answered`: the tool failed, and `result` is the reason." }),
    reason: z.string().optional().meta({ description: "Passed to the model with `rejected`." }),
    argumentsHash: z
      .string()
      .optional()
      .meta({ description: "Hash of the arguments that the person saw; required for approvals." }),
  })
  .meta({ id: "Decision", description: "A decision on a request; only the first one counts." });

/* Schemas and values of turns in this API. */

/**
 * A client's settings; the core checks the values. Without `providerOptions`, which can turn on features that the operator pays for
 * and does not know of.
 */
const settingsSchema = z
  .strictObject({
    temperature: z.number().optional().meta({ description: "Sampling temperature, 0 or more." }),
    maxOutputTokens: z
      .number()
      .optional()
      .meta({ description: "Most tokens of one answer, reasoning included; at most the definition's." }),
    stopSequences: z.array(z.string()).optional().meta({ description: "Texts at which an answer ends." }),
    reasoningEffort: modelRequestSchema.shape.reasoningEffort.meta({
      description: "How much the model thinks; at most the definition's.",
    }),
    toolChoice: z
      .union([z.enum(["auto", "none", "required"]), z.strictObject({ tool: z.string() })])
      .optional()
      .meta({ description: "Whether tools may or must be called; a call is forced in the first step only." }),
  })
  .meta({
    id: "CallSettings",
    description: "Settings of the turn's model calls; otherwise those of the definition apply.",
  });

/** The body that starts a turn. */
export const newTurnSchema = z
  .strictObject({
    input: contentSchema
      .nullable()
      .meta({ description: "A text, or parts: texts, images and files. Null continues without a new message." }),
    budget: budgetSchema.optional(),
    settings: settingsSchema.optional(),
    ifBusy: z.enum(["refuse", "queue", "supersede", "steer"]).optional().meta({
      description:
        "What to do while another turn is open. Default `refuse`: 409. `steer`: give the input to that turn.",
    }),
    clientTools: z
      .array(z.strictObject({ name: z.string(), description: z.string(), parameters: jsonObjectSchema }))
      .optional()
      .meta({ description: "Tools that the caller runs in this turn, if the definition allows it." }),
  })
  .meta({ id: "NewTurn", description: "A turn to start." });

/** The body of an input for an open turn. */
export const newInputSchema = z
  .strictObject({ input: contentSchema.meta({ description: "A text, or parts: texts, images and files." }) })
  .meta({ id: "NewInput", description: "An input for an open turn." });

const spendingSchema = z
  .object({
    calls: z.number().int(),
    inputTokens: z.number().int(),
    outputTokens: z.number().int(),
    cachedInputTokens: z.number().int(),
    cacheWriteTokens: z.number().int(),
    reasoningTokens: z.number().int(),
    cost: z.number().nullable().meta({ description: "Dollars; null if the price of a call is unknown." }),
    estimatedCalls: z.number().int(),
    unconfirmedCalls: z.number().int(),
  })
  .meta({ id: "Spending", description: "Usage of model calls." }) satisfies z.ZodType<Spending>;

const limitStopSchema = z
  .object({
    reason: stopReasonSchema,
    limit: limitNameSchema,
    agentId: z.string(),
    accountId: z.string(),
    used: z.number().nullable(),
    max: z.number().nullable(),
    message: z.string(),
    wayOn: z.string(),
  })
  .meta({ id: "LimitStop", description: "A limit that ended a turn." }) satisfies z.ZodType<LimitStop>;

export const turnResultSchema = z
  .object({
    text: z
      .string()
      .meta({ description: "The answer; for a stopped or failed turn its text so far, or why it has none." }),
    output: jsonSchema
      .optional()
      .meta({ description: "The validated answer, if the definition has an output schema." }),
    stopReason: stopReasonSchema,
    stop: limitStopSchema.nullable(),
    finalAnswer: limitStopSchema.nullable(),
    steps: z.number().int(),
    toolCalls: z.number().int(),
    usage: usageSchema,
    cost: z.number().nullable().meta({ description: "Dollars of the agent's own calls; null if a price is unknown." }),
    spent: z.object({
      own: spendingSchema,
      tree: spendingSchema,
      byModel: z.record(z.string(), spendingSchema),
    }),
    error: storedErrorSchema.nullable(),
    errors: z.array(storedErrorSchema).meta({ description: "All errors, including those of tools." }),
  })
  .meta({ id: "TurnResult", description: "The outcome of an ended turn." });
export type TurnResultJson = DeepReadonly<z.infer<typeof turnResultSchema>>;

export function turnResultJson(result: TurnResult): TurnResultJson {
  const output = outputOf(result);
  const { text, stopReason, stop, finalAnswer, steps, toolCalls, usage, cost, spent, error, errors } = result;
  return {
    text,
    ...(output === undefined ? {} : { output }),
    stopReason,
    stop,
    finalAnswer,
    steps,
    toolCalls,
    usage,
    cost,
    spent,
    error,
    errors,
  };
}

const place = {
  turnId: z.string(),
  agentId: z.string(),
  number: z.number().int().positive().meta({ description: "Number of the turn within its agent, from 1." }),
};

export const turnSchema = z
  .object({
    ...place,
    status: z.enum(["queued", "running", "waiting", "completed", "stopped", "failed"]),
    step: z.number().int().nullable().meta({ description: "The current step; null unless the turn runs." }),
    waitingFor: z.enum(["paused", "request"]).nullable().meta({ description: "Null unless the turn waits." }),
    requests: z
      .array(requestSchema)
      .meta({ description: "Open requests of the turn and its subagents that it waits for." }),
    result: turnResultSchema.nullable().meta({ description: "Null until the turn has ended." }),
  })
  .meta({ id: "Turn", description: "The current state of a turn." });
export type TurnJson = DeepReadonly<z.infer<typeof turnSchema>>;

export const turnSummarySchema = z
  .object({
    ...place,
    sessionId: z.string().nullable(),
    status: z
      .enum(["queued", "open", "completed", "stopped", "failed"])
      .meta({ description: "`open`: the turn runs or waits; read the turn for details." }),
    stopReason: stopReasonSchema.nullable(),
    openedAt: milliseconds,
    changedAt: milliseconds,
  })
  .meta({ id: "TurnSummary", description: "A turn in a list." });
export type TurnSummaryJson = DeepReadonly<z.infer<typeof turnSummarySchema>>;

export const acceptedTurnSchema = z
  .object(place)
  .meta({ id: "AcceptedTurn", description: "An accepted turn; it continues if its caller disconnects." });

export const steerAnswerSchema = z
  .object({
    status: z
      .enum(["delivered", "queued"])
      .meta({ description: "`delivered`: the open turn has the input. `queued`: the input has opened the turn." }),
    ...place,
    step: z.number().int().optional().meta({ description: "With `delivered`: the step whose model call sees it." }),
  })
  .meta({ id: "SteerAnswer", description: "Where an input went." });

export function steerAnswerJson(agentId: string, answer: SteerAnswer): z.infer<typeof steerAnswerSchema> {
  const step = answer.status === "delivered" ? { step: answer.step } : {};
  return { status: answer.status, ...turnIdJson(agentId, answer.turnId), ...step };
}

export function turnIdJson(agentId: string, turnId: string) {
  return { turnId, agentId, number: numberOfTurn(turnId) };
}

export function turnJson(agentId: string, now: Awaited<ReturnType<Turn["current"]>>): TurnJson {
  const rests = { step: null, waitingFor: null, requests: [], result: null };
  const place = turnIdJson(agentId, now.turnId);
  if ("step" in now) return { ...place, ...rests, status: now.status, step: now.step };
  if (now.status !== "waiting") return { ...place, ...rests, status: now.status, result: turnResultJson(now) };
  const requests = now.reason === "request" ? now.requests.map(requestJson) : [];
  return { ...place, ...rests, status: "waiting", waitingFor: now.reason, requests };
}

export function turnSummaryJson(record: TurnRecord): TurnSummaryJson {
  const { turnId, agentId, number, sessionId, status, stopReason, openedAt, changedAt } = record;
  return { turnId, agentId, number, sessionId, status, stopReason, openedAt, changedAt };
}
