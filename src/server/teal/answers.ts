import { z } from "zod";
import { jsonSchema, type AgentRequest } from "../../state/index.ts";
import type { Agent, TurnRest, TurnResult } from "../../runtime/index.ts";
import { urlIdOf } from "../core/url-ids.ts";
import { requestIdOfTurn } from "./task-ids.ts";

const ids = { session_id: z.string(), task_id: z.string(), request_id: z.string() };

const toolCallSchema = z
  .object({
    inner_content: z.null(),
    ai_model_id: z.null(),
    metadata: z.record(z.string(), jsonSchema),
    content_type: z.literal("function_call"),
    id: z.string(),
    index: z.int(),
    name: z.string(),
    function_name: z.string(),
    plugin_name: z.string().nullable(),
    /** JSON text. */
    arguments: z.string(),
  })
  .meta({ id: "FunctionCallContent" });
type ToolCall = z.output<typeof toolCallSchema>;

const completedSchema = z
  .object({
    task_id: z.string(),
    session_id: z.string(),
    request_id: z.string(),
    output: z.string(),
    source: z.string(),
    token_usage: z.object({ completion_tokens: z.int(), prompt_tokens: z.int(), total_tokens: z.int() }),
    extra_data: z.null(),
  })
  .meta({ id: "TealAgentsResponse" });

const pausedSchema = z
  .object({
    ...ids,
    message: z.string(),
    approval_url: z.string(),
    rejection_url: z.string(),
    tool_calls: z.array(toolCallSchema),
  })
  .meta({ id: "HitlResponse" });

const rejectedSchema = z.object({ ...ids, message: z.string() }).meta({ id: "RejectedToolResponse" });

/** The content of an answer. A resumption is answered with the content alone. */
export const contentSchema = z.union([completedSchema, pausedSchema, rejectedSchema]);
export type AnswerContent = z.output<typeof contentSchema>;

export const stateResponseSchema = z
  .object({ ...ids, status: z.enum(["Completed", "Paused", "Canceled"]), content: contentSchema })
  .meta({ id: "StateResponse" });

export const partialResponseSchema = z
  .object({ ...ids, output_partial: z.string(), source: z.string() })
  .meta({ id: "TealAgentsPartialResponse" });

/** The three ids of a request, in the order of the format. */
export interface RequestIds {
  readonly session_id: string;
  readonly task_id: string;
  readonly request_id: string;
}

export function idsOf({ agentId, sessionId }: Pick<Agent, "agentId" | "sessionId">, turnId: string): RequestIds {
  return { session_id: sessionId ?? agentId, task_id: agentId, request_id: requestIdOfTurn(turnId) };
}

export type Answer =
  | { readonly status: "Completed" | "Paused" | "Canceled"; readonly content: AnswerContent }
  /** `detail`: the reason. */
  | { readonly status: "Failed"; readonly detail: string };

/** The name and version in an agent's URLs. */
export interface Address {
  readonly name: string;
  readonly version: string;
}

export const prefixOf = ({ name, version }: Address): string => `/${name}/${version}`;
export const sourceOf = ({ name, version }: Address): string => `${name}:${version}`;
export const resumePath = "/tealagents/v1alpha1/resume";

/** The answer for a request that has ended or waits. */
export async function answerOf(
  { agent, turnId, address }: { readonly agent: Agent; readonly turnId: string; readonly address: Address },
  rest: TurnRest,
): Promise<Answer> {
  const three = idsOf(agent, turnId);
  if (rest.status === "waiting") {
    const requests = rest.reason === "request" ? rest.requests : [];
    return { status: "Paused", content: pausedContent(three, address, requests) };
  }
  if (rest.status === "completed" || (rest.stopReason === "steps_limit" && (await hasOwnText(agent)))) {
    return { status: "Completed", content: completedContent(three, address, rest) };
  }
  if (rest.stopReason === "user_requested") return { status: "Canceled", content: rejectedContent(three) };
  return { status: "Failed", detail: rest.error?.message ?? rest.text };
}

/** Whether the text of a stopped turn came from the model; otherwise it is the runtime's message. */
async function hasOwnText(agent: Agent): Promise<boolean> {
  const [last] = await agent.getMessages({ maxMessages: 1 });
  return last?.origin !== "runtime";
}

function completedContent(three: RequestIds, address: Address, { text, spent }: TurnResult): AnswerContent {
  const { inputTokens, outputTokens } = spent.tree;
  return {
    task_id: three.task_id,
    session_id: three.session_id,
    request_id: three.request_id,
    output: text,
    source: sourceOf(address),
    token_usage: {
      completion_tokens: outputTokens,
      prompt_tokens: inputTokens,
      total_tokens: inputTokens + outputTokens,
    },
    extra_data: null,
  };
}

/** `approval_url` contains the ids of these calls, so that it approves no others. */
export function pausedContent(three: RequestIds, address: Address, requests: readonly AgentRequest[]): AnswerContent {
  const url = `${prefixOf(address)}${resumePath}/${three.request_id}`;
  const shown = requests.filter(({ kind }) => kind === "approval").map(({ requestId }) => urlIdOf(requestId));
  const calls = shown.length === 0 ? "" : `&calls=${shown.map(queryWord).join(",")}`;
  return {
    task_id: three.task_id,
    session_id: three.session_id,
    request_id: three.request_id,
    message: requests.length === 0 ? "The task is paused." : "Human intervention required.",
    approval_url: `${url}?action=approve${calls}`,
    rejection_url: `${url}?action=reject`,
    tool_calls: requests.map(toolCallOf),
  };
}

function queryWord(text: string): string {
  return encodeURIComponent(text).replaceAll("%3A", ":");
}

/** The format's original message, including its typo. */
export function rejectedContent(three: RequestIds): AnswerContent {
  const { task_id, session_id, request_id } = three;
  return { task_id, session_id, request_id, message: "Tool excecution rejected." };
}

/** Converts a request to its tool call. For questions and the caller's own tools, `metadata` contains the kind. */
function toolCallOf({ requestId, kind, name, prompt, arguments: args }: AgentRequest, index: number): ToolCall {
  const dash = name.indexOf("-");
  return {
    inner_content: null,
    ai_model_id: null,
    metadata: kind === "approval" ? {} : { kind, prompt },
    content_type: "function_call",
    id: requestId,
    index,
    name,
    function_name: name.slice(dash + 1),
    plugin_name: dash === -1 ? null : name.slice(0, dash),
    arguments: JSON.stringify(args),
  };
}
