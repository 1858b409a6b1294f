import { z } from "zod";
import { InvalidInputError } from "../errors/index.ts";
import type { DeepReadonly, TraceHeaders } from "../base/index.ts";
import { type AgentKey, traceHeadersSchema } from "../state/index.ts";

/** Longer than any id that this package makes. */
const idSchema = z
  .string()
  .min(1)
  .max(512)
  .refine((id) => id.isWellFormed(), "is no well-formed text");

/** W3C Trace Context of what the job is for. */
const traceShape = traceHeadersSchema.partial().shape;

const agentSchema = z.object({ tenant: idSchema, agentId: idSchema });

/** An agent is to be taken up. */
export const wakeJobSchema = z.strictObject({
  kind: z.literal("wake"),
  ...agentSchema.shape,
  ...traceShape,
});
export type WakeJob = DeepReadonly<z.infer<typeof wakeJobSchema>>;

/** A tool call is to be run. It carries ids only: who runs it reads from the stores what it is about. */
export const toolJobSchema = z.strictObject({
  kind: z.literal("tool"),
  ...agentSchema.shape,
  callId: idSchema,
  /** From 1. */
  attempt: z.number().int().positive().max(1_000_000),
  /** Under which the call was made, where that matters to whoever runs it. */
  epoch: z.number().int().nonnegative().optional(),
  /** Whether it may be run again after its worker has died: true for effects `none` and `keyed`, false for `once`. */
  isRepeatable: z.boolean(),
  /** How long a run may take, in whole milliseconds; what waits in the queue does not count. Absent: any time. */
  timeoutMs: z
    .number()
    .int()
    .positive()
    .max(2 ** 31 - 1)
    .optional(),
  ...traceShape,
});
export type ToolJob = DeepReadonly<z.infer<typeof toolJobSchema>>;

export const jobSchema = z.discriminatedUnion("kind", [wakeJobSchema, toolJobSchema]);
export type Job = DeepReadonly<z.infer<typeof jobSchema>>;

/** What a tool job is known by. */
export type ToolJobKey = Pick<ToolJob, "tenant" | "agentId" | "callId" | "attempt">;

/** Throws `InvalidInputError` that names the place. */
export function checkedWake(agent: AgentKey, trace: TraceHeaders | undefined): WakeJob {
  const { tenant, agentId } = agent;
  return checked(wakeJobSchema, { kind: "wake", tenant, agentId, ...trace }, "the wake");
}

/** Throws `InvalidInputError` that names the place. */
export function checkedTool(job: Omit<ToolJob, "kind">): ToolJob {
  return checked(toolJobSchema, { ...job, kind: "tool" }, "the tool job");
}

function checked<T>(schema: z.ZodType<T>, value: unknown, what: string): T {
  const parsed = schema.safeParse(value);
  if (parsed.success) return parsed.data;
  throw new InvalidInputError(`${what} is not valid: ${issueOf(parsed.error)}`);
}

/** The first thing that is wrong, and where; never the value. */
export function issueOf(error: z.ZodError): string {
  const [issue] = error.issues;
  const place = issue?.path.join(".") ?? "";
  return `${place === "" ? "it" : place}: ${issue?.message ?? "does not fit"}`;
}

/** An agent's name among the wakes. Different agents never have the same. */
export function wakeKeyOf({ tenant, agentId }: AgentKey): string {
  return `agent.${encodeURIComponent(tenant)}/${encodeURIComponent(agentId)}`;
}

/**
 * A tool job's name in its queue. Different jobs never have the same; it is no number and holds no colon, which queues
 * would not take.
 */
export function toolJobIdOf({ tenant, agentId, callId, attempt }: ToolJobKey): string {
  const ids = [tenant, agentId, callId].map((id) => encodeURIComponent(id));
  return `call.${ids.join("/")}/${attempt}`;
}
