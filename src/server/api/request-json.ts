import { z } from "zod";
import type { DeepReadonly } from "../../base/index.ts";
import { type AgentRequest, agentRequestSchema, jsonSchema } from "../../state/index.ts";

/* Requests to people and clients as this API shows them, and the body that decides one. */

export const requestSchema = agentRequestSchema
  .omit({ tenant: true, ownerId: true, isGuarded: true, decidedWith: true })
  .meta({ id: "Request", description: "What a turn waits for: an approval, an answer, a client's tool, credentials." });
export type RequestJson = DeepReadonly<z.infer<typeof requestSchema>>;

export function requestJson(request: AgentRequest): RequestJson {
  const { tenant: _tenant, ownerId: _ownerId, isGuarded: _isGuarded, decidedWith: _decidedWith, ...shown } = request;
  return shown;
}

export const decisionBodySchema = z
  .strictObject({
    verdict: z.enum(["approved", "edited", "rejected", "answered", "provided"]).meta({
      description: "Of an approval: approved, edited, rejected. Of a question or client tool: answered, rejected.",
    }),
    arguments: jsonSchema.optional().meta({ description: "For `edited`: they replace the model's." }),
    result: jsonSchema.optional().meta({ description: "For `answered`: the answer, or the tool's result." }),
    isError: z.boolean().optional().meta({ description: "For `answered`: the tool failed, and `result` says why." }),
    reason: z.string().optional().meta({ description: "With `rejected` the model gets it." }),
    argumentsHash: z
      .string()
      .optional()
      .meta({ description: "Hash of the arguments that were shown; required for approvals." }),
  })
  .meta({ id: "Decision", description: "A decision on a request; only the first one counts." });
