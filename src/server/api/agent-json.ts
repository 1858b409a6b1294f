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
  sessionStubSchema,
  storedErrorSchema,
} from "../../state/index.ts";
import { shownMetadata } from "../core/creation-mark.ts";

/*
 * Schemas and values of agents, artifacts and accounts in this API. They contain no tenant, no owner (the caller) and
 * no internals of the runtime (checkpoints, markers).
 */

export const milliseconds = z.number().int().meta({ description: "Milliseconds since the epoch." });

/** A client's budget; the core checks the numbers. */
export const budgetSchema = z
  .strictObject({
    maxSteps: z.number().optional().meta({ description: "Model calls that open a step." }),
    maxTokens: z.number().optional().meta({ description: "Input and output tokens, including subagents." }),
    maxSeconds: z.number().optional().meta({ description: "Seconds of work; waiting for people does not count." }),
    maxCost: z.number().optional().meta({ description: "Dollars, including subagents." }),
    deadline: z
      .union([z.string(), z.number()])
      .optional()
      .meta({ description: "The time at which all work ends: ISO 8601, or milliseconds since the epoch." }),
    maxToolCalls: z.number().optional().meta({ description: "Tool calls of this agent." }),
    maxTreeSteps: z.number().optional().meta({ description: "Steps of this agent and all its subagents." }),
    maxTreeToolCalls: z.number().optional().meta({ description: "Tool calls of this agent and all its subagents." }),
    strict: z.boolean().optional().meta({ description: "Reserves for each prompt an upper bound of its tokens." }),
    finalAnswer: z.boolean().optional().meta({ description: "The last call within the budget must give an answer." }),
    askAtLimit: z
      .boolean()
      .optional()
      .meta({ description: "At a limit, a request asks a person to continue with more." }),
  })
  .meta({ id: "Budget", description: "Limits. Absent means unlimited; 0 allows nothing." });

export const agentSchema = z
  .object({
    agentId: z.string(),
    definition: z.object({
      name: z.string(),
      version: z.string().meta({ description: "A hash of the definition's settings that affect its behaviour." }),
    }),
    rootAgentId: z
      .string()
      .meta({ description: "The root agent of its tree; the agent itself unless it is a subagent." }),
    sessionId: z.string().nullable(),
    isStubbed: z
      .boolean()
      .meta({ description: "Its tools and those of its subagents do not run: stubs give their results." }),
    status: lifecycleSchema,
    turnCount: z.number().int().meta({ description: "Turns that have ended." }),
    openTurnId: z.string().nullable(),
    createdAt: milliseconds,
    lastActivity: milliseconds,
    error: storedErrorSchema
      .nullable()
      .meta({ description: "The error of its last turn; null unless that turn failed." }),
    metadata: jsonObjectSchema,
  })
  .meta({ id: "Agent", description: "A durable agent." });
export type AgentJson = DeepReadonly<z.infer<typeof agentSchema>>;

export function agentJson(agent: Agent): AgentJson {
  const { agentId, definition, rootAgentId, sessionId, isStubbed, createdAt, state } = agent;
  const { status, turnCount, openTurnId, lastActivity, error = null, metadata = {} } = state;
  const identity = { agentId, definition, rootAgentId, sessionId, isStubbed };
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

/** An agent in a list. */
export function listedAgentJson(record: AgentRecord): AgentJson {
  const { agentId, definition, rootAgentId, sessionId, createdAt } = record;
  const { turnCount, openTurnId, lastActivity, error, metadata } = record;
  return {
    agentId,
    definition: { name: definition.name, version: definition.hash },
    rootAgentId,
    sessionId,
    isStubbed: record.stubs !== undefined,
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
    name: z.string().meta({ description: "Value for `definition` of a new agent." }),
    version: z.string().meta({ description: "A hash of the definition's settings that affect its behaviour." }),
    model: z.string(),
    tools: z.array(z.object({ name: z.string(), description: z.string() })),
  })
  .meta({ id: "Definition", description: "A kind of agent that can be created here." });

export function definitionJson({ name, ref, model, tools }: AgentDefinition): z.infer<typeof definitionSchema> {
  const listed = tools.tools.map((tool) => ({ name: tool.name, description: tool.description }));
  return { name, version: ref.hash, model: model.name, tools: listed };
}

const stubUseSchema = z
  .object({
    ...sessionStubSchema.shape,
    used: z.number().int().meta({ description: "The calls of all agents of the session that it has answered." }),
  })
  .meta({ id: "StubUse", description: "A stub, and how often it was used." });

export const stubReportSchema = z
  .object({
    stubs: z.array(stubUseSchema),
    unused: z
      .array(stubUseSchema)
      .meta({ description: "Stubs that have answered fewer calls than their `times`; without `times`, none." }),
    mismatches: z
      .array(
        z.object({
          agentId: z.string(),
          turnId: z.string(),
          callId: z.string(),
          tool: z.string(),
          message: z.string().meta({ description: "Names the call, the nearest stub and what differs." }),
        }),
      )
      .meta({ description: "Calls that no stub answered. Each of them has failed its turn." }),
  })
  .meta({ id: "StubReport", description: "How the stubs of a session were used." });

/** An artifact without its content. */
export const artifactInfoSchema = artifactSchema.omit({ content: true }).meta({
  id: "Artifact",
  description: "A saved result. Its content is at `/api/agents/{agentId}/artifacts/{artifactId}`.",
});

export const accountJsonSchema = accountSchema.omit({ activeSince: true, line: true }).meta({
  id: "Account",
  description: "The limits and usage of an agent's lifetime or of one turn, including subagents.",
});

export function accountJson(account: Account): DeepReadonly<z.infer<typeof accountJsonSchema>> {
  const { activeSince: _activeSince, line: _line, ...shown } = account;
  return shown;
}
