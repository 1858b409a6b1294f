import { z } from "zod";
import type { AgentDefinition } from "../../agents/index.ts";
import type { DeepReadonly } from "../../base/index.ts";
import { type Account, accountSchema } from "../../budget/index.ts";
import type { Agent } from "../../runtime/index.ts";
import {
  type AgentRecord,
  artifactSchema,
  jsonObjectSchema,
  lifecycleSchema,
  storedErrorSchema,
} from "../../state/index.ts";
import { shownMetadata } from "../core/caller.ts";

/*
 * Agents, artifacts and accounts as this API shows them: schemas with the functions that make their values. They hold
 * no tenant, no owner (it is the caller) and nothing that only the runtime understands (checkpoints, marks).
 */

export const milliseconds = z.number().int().meta({ description: "Milliseconds since the epoch." });

/** A budget as a client writes it; the core checks the numbers. */
export const budgetSchema = z
  .strictObject({
    maxSteps: z.number().optional().meta({ description: "Model calls that open a step." }),
    maxTokens: z.number().optional().meta({ description: "Input and output tokens together, subagents included." }),
    maxSeconds: z.number().optional().meta({ description: "Seconds of work; waiting for people does not count." }),
    maxCost: z.number().optional().meta({ description: "Dollars, subagents included." }),
    deadline: z
      .union([z.string(), z.number()])
      .optional()
      .meta({ description: "The moment at which all work ends: an ISO text, or milliseconds since the epoch." }),
    maxToolCalls: z.number().optional().meta({ description: "Tool calls of this agent." }),
    maxTreeSteps: z.number().optional().meta({ description: "Steps of this agent and all its subagents." }),
    maxTreeToolCalls: z.number().optional().meta({ description: "Tool calls of this agent and all its subagents." }),
    strict: z.boolean().optional().meta({ description: "Reserves each prompt at a bound that no tokenizer exceeds." }),
    finalAnswer: z.boolean().optional().meta({ description: "The last call that fits gives an answer." }),
  })
  .meta({ id: "Budget", description: "Limits. An absent one is unlimited, 0 allows nothing." });

export const agentSchema = z
  .object({
    agentId: z.string(),
    definition: z.object({
      name: z.string(),
      version: z.string().meta({ description: "A hash of the parts that shape its behaviour." }),
    }),
    rootAgentId: z
      .string()
      .meta({ description: "The agent at the top of its tree: the agent itself, unless it is a subagent." }),
    sessionId: z.string().nullable(),
    status: lifecycleSchema,
    turnCount: z.number().int().meta({ description: "Turns that have ended." }),
    openTurnId: z.string().nullable(),
    createdAt: milliseconds,
    lastActivity: milliseconds,
    error: storedErrorSchema.nullable().meta({ description: "Why its last turn failed; null if it did not." }),
    metadata: jsonObjectSchema,
  })
  .meta({ id: "Agent", description: "A durable agent." });
export type AgentJson = DeepReadonly<z.infer<typeof agentSchema>>;

export function agentJson({ agentId, definition, rootAgentId, sessionId, createdAt, state }: Agent): AgentJson {
  const { status, turnCount, openTurnId, lastActivity, error = null, metadata = {} } = state;
  const identity = { agentId, definition, rootAgentId, sessionId };
  return {
    ...identity,
    status,
    turnCount,
    openTurnId,
    createdAt,
    lastActivity,
    error,
    metadata: shownMetadata(metadata),
  };
}

/** An agent of a list. */
export function listedAgentJson(record: AgentRecord): AgentJson {
  const { agentId, definition, rootAgentId, sessionId, createdAt } = record;
  const { turnCount, openTurnId, lastActivity, error, metadata } = record;
  return {
    agentId,
    definition: { name: definition.name, version: definition.hash },
    rootAgentId,
    sessionId,
    status: record.status,
    turnCount,
    openTurnId,
    createdAt,
    lastActivity,
    error,
    metadata: shownMetadata(metadata),
  };
}

export const definitionSchema = z
  .object({
    name: z.string().meta({ description: "What `definition` of a new agent takes." }),
    version: z.string().meta({ description: "A hash of the parts that shape its behaviour." }),
    model: z.string(),
    tools: z.array(z.object({ name: z.string(), description: z.string() })),
  })
  .meta({ id: "Definition", description: "A kind of agent that can be created here." });

export function definitionJson({ name, ref, model, tools }: AgentDefinition): z.infer<typeof definitionSchema> {
  const listed = tools.tools.map((tool) => ({ name: tool.name, description: tool.description }));
  return { name, version: ref.hash, model: model.name, tools: listed };
}

/** An artifact without its content. */
export const artifactInfoSchema = artifactSchema.omit({ content: true }).meta({
  id: "Artifact",
  description: "A saved result. Its content is at `/api/agents/{agentId}/artifacts/{artifactId}`.",
});

export const accountJsonSchema = accountSchema
  .omit({ activeSince: true, line: true })
  .meta({ id: "Account", description: "The limits and the use of an agent's life or of one turn, with all below it." });

export function accountJson(account: Account): DeepReadonly<z.infer<typeof accountJsonSchema>> {
  const { activeSince: _activeSince, line: _line, ...shown } = account;
  return shown;
}
