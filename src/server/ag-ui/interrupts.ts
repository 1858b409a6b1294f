import { z } from "zod";
import { InvalidInputError } from "../../errors/index.ts";
import type { Decide } from "../../runtime/index.ts";
import { type AgentRequest, type JsonObject, jsonObjectSchema, jsonSchema } from "../../state/index.ts";
import type { Interrupt } from "./events.ts";

/** A client's answer to an interrupt. */
export const resumeEntrySchema = z
  .object({
    interruptId: z.string(),
    status: z.enum(["resolved", "cancelled"]),
    payload: jsonSchema.optional(),
  })
  .meta({ id: "ResumeEntry" });
export type ResumeEntry = z.output<typeof resumeEntrySchema>;

const approvalSchema = z.object({
  approved: z.boolean(),
  /** Runs the call with these arguments instead. */
  editedArgs: jsonObjectSchema.optional(),
  /** Passed to the model with a rejection. */
  reason: z.string().optional(),
  /** Hash of the arguments that the person saw; an approval for other arguments is refused. */
  argumentsHash: z.string().optional(),
});

const reasons: Readonly<Record<AgentRequest["kind"], string>> = {
  approval: "tool_call",
  question: "input_required",
  client: "troupe:client",
  auth: "troupe:auth",
  budget: "troupe:budget",
};

const approvalPayload: JsonObject = {
  type: "object",
  properties: {
    approved: { type: "boolean" },
    editedArgs: { type: "object" },
    reason: { type: "string" },
    argumentsHash: { type: "string" },
  },
  required: ["approved"],
};

/** JSON Schema of the payload that a client may send. */
const payloads: Readonly<Record<AgentRequest["kind"], JsonObject | undefined>> = {
  approval: approvalPayload,
  budget: approvalPayload,
  question: { type: "string" },
  client: undefined,
  auth: undefined,
};

/** Converts a request to this protocol's form. */
export function interruptOf(request: AgentRequest, rootAgentId: string): Interrupt {
  const { requestId: id, kind, prompt: message, callId: toolCallId, expiresAt, agentId, name } = request;
  const responseSchema = payloads[kind];
  return {
    id,
    reason: reasons[kind],
    message,
    toolCallId,
    ...(responseSchema === undefined ? {} : { responseSchema }),
    ...(expiresAt === null ? {} : { expiresAt: new Date(expiresAt).toISOString() }),
    ...(agentId === rootAgentId ? {} : { subagentRunId: agentId }),
    metadata: { toolCallName: name, arguments: request.arguments, argumentsHash: request.argumentsHash },
  };
}

/** Converts an answer to a decision. Throws `InvalidInputError` when its payload does not fit the interrupt. */
export function decisionOf({ kind }: AgentRequest, entry: ResumeEntry): Omit<Decide, "by" | "key"> {
  const { status, payload, interruptId } = entry;
  if (status === "cancelled") return { verdict: "rejected", reason: "cancelled" };
  if (kind === "auth") return { verdict: "provided" };
  if (kind === "approval" || kind === "budget") return approvalOf(interruptId, payload);
  if (payload === undefined) throw new InvalidInputError(`resume: the payload of ${interruptId} must be its answer`);
  return { verdict: "answered", result: payload };
}

function approvalOf(interruptId: string, payload: unknown): Omit<Decide, "by" | "key"> {
  const parsed = approvalSchema.safeParse(payload);
  if (!parsed.success) {
    throw new InvalidInputError(
      `resume: the payload of ${interruptId} must be { approved: true or false, editedArgs?, reason?, argumentsHash? }`,
    );
  }
  const { approved, editedArgs, reason, argumentsHash } = parsed.data;
  const said = {
    ...(reason === undefined ? {} : { reason }),
    ...(argumentsHash === undefined ? {} : { argumentsHash }),
  };
  if (!approved) return { verdict: "rejected", ...said };
  return editedArgs === undefined
    ? { verdict: "approved", ...said }
    : { verdict: "edited", arguments: editedArgs, ...said };
}
