import { z } from "zod";
import type { JsonObject, Usage } from "../../state/index.ts";

/* The answers of the Responses API. */

export type ItemStatus = "in_progress" | "completed" | "incomplete";

export interface MessageItem {
  readonly type: "message";
  readonly id: string;
  readonly status: ItemStatus;
  readonly role: "assistant";
  readonly content: readonly OutputText[];
}

export interface OutputText {
  readonly type: "output_text";
  readonly text: string;
  readonly annotations: readonly [];
  readonly logprobs: readonly [];
}

export interface ReasoningItem {
  readonly type: "reasoning";
  readonly id: string;
  readonly status: ItemStatus;
  readonly summary: readonly [];
  readonly content: readonly ReasoningText[];
}

export interface ReasoningText {
  readonly type: "reasoning_text";
  readonly text: string;
}

/** A tool call that the server ran. */
export interface McpCallItem {
  readonly type: "mcp_call";
  readonly id: string;
  readonly status: ItemStatus | "failed";
  /** Name of the agent that made the call. */
  readonly server_label: string;
  readonly name: string;
  readonly arguments: string;
  readonly output: string | null;
  readonly error: { readonly type: "mcp_tool_execution_error"; readonly content: readonly JsonObject[] } | null;
  readonly approval_request_id: string | null;
}

/** A call that waits for a person's approval. */
export interface ApprovalItem {
  readonly type: "mcp_approval_request";
  readonly id: string;
  readonly server_label: string;
  readonly name: string;
  readonly arguments: string;
}

/** A call that the client must make, or a question to its user. */
export interface FunctionCallItem {
  readonly type: "function_call";
  readonly id: string;
  readonly call_id: string;
  readonly status: ItemStatus;
  readonly name: string;
  readonly arguments: string;
}

export type OutputItem = MessageItem | ReasoningItem | McpCallItem | ApprovalItem | FunctionCallItem;

/** An event of a stream. `sequence_number` increases by the length of the text written. */
export type ResponseEvent = Readonly<Record<string, unknown>> & {
  readonly type: string;
  readonly sequence_number: number;
};

export type ResponseStatus = "queued" | "in_progress" | "completed" | "incomplete" | "failed" | "cancelled";

/** The fixed fields of a response. */
export interface ResponseHead {
  readonly id: string;
  /** Seconds since the epoch. */
  readonly createdAt: number;
  /** Name of the definition. */
  readonly model: string;
  readonly previousResponseId: string | null;
  /** The client's name of the conversation. */
  readonly conversation: string | null;
}

/** The state of a response. */
export interface ResponseBody {
  readonly status: ResponseStatus;
  readonly output: readonly OutputItem[];
  /** Whether an incomplete response ends with a refusal of the model or its provider. */
  readonly isRefusal?: boolean | undefined;
  readonly error?: { readonly code: string; readonly message: string } | undefined;
  /** `null` until the response has finished. */
  readonly usage: Usage | null;
}

export const responseSchema = z
  .looseObject({
    id: z.string(),
    object: z.literal("response"),
    created_at: z.int(),
    status: z.enum(["queued", "in_progress", "completed", "incomplete", "failed", "cancelled"]),
    model: z.string(),
    output: z.array(z.looseObject({ type: z.string(), id: z.string() })),
    previous_response_id: z.string().nullable(),
    conversation: z.object({ id: z.string() }).nullable(),
  })
  .meta({ id: "Response" });
export type WireResponse = z.output<typeof responseSchema>;

export function responseObject(
  head: ResponseHead,
  { status, output, isRefusal, error, usage }: ResponseBody,
): WireResponse {
  return {
    id: head.id,
    object: "response",
    created_at: head.createdAt,
    status,
    error: error ?? null,
    // The protocol has two reasons; `max_output_tokens` is the closest one for a limit of the agent.
    incomplete_details:
      status === "incomplete" ? { reason: isRefusal === true ? "content_filter" : "max_output_tokens" } : null,
    instructions: null,
    max_output_tokens: null,
    model: head.model,
    output: output.map((item) => ({ ...item })),
    parallel_tool_calls: true,
    previous_response_id: head.previousResponseId,
    conversation: head.conversation === null ? null : { id: head.conversation },
    reasoning: { effort: null, summary: null },
    store: true,
    temperature: null,
    text: { format: { type: "text" } },
    tool_choice: "auto",
    tools: [],
    top_p: null,
    truncation: "disabled",
    usage: usage === null ? null : wireUsage(usage),
    metadata: {},
  };
}

function wireUsage({ inputTokens, outputTokens, cachedInputTokens = 0, reasoningTokens = 0 }: Usage): JsonObject {
  return {
    input_tokens: inputTokens,
    input_tokens_details: { cached_tokens: cachedInputTokens },
    output_tokens: outputTokens,
    output_tokens_details: { reasoning_tokens: reasoningTokens },
    total_tokens: inputTokens + outputTokens,
  };
}
