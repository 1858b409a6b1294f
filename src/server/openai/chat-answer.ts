import { totalUse } from "../../budget/index.ts";
import type { TurnRest } from "../../runtime/index.ts";
import type { AgentRequest, JsonObject } from "../../state/index.ts";
import type { Caller } from "../core/caller.ts";
import { answersWhole, type Answering, type Asking, toolCallIdOf } from "./chat-start.ts";
import { GAP } from "./chat-request.ts";
import type { ProtocolError } from "./protocol-errors.ts";
import { answerTo, shownItems } from "./shown-history.ts";

/** Tokens of a turn so far, including its subagents. */
export interface ChatUsage {
  readonly prompt_tokens: number;
  readonly completion_tokens: number;
  readonly total_tokens: number;
  readonly prompt_tokens_details: { readonly cached_tokens: number };
  readonly completion_tokens_details: { readonly reasoning_tokens: number };
}

interface ChatToolCall {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: string };
}

/** The answer of a turn that has ended or waits for a decision. */
export interface ChatAnswer {
  readonly text: string;
  /** Calls of the client's tools only. */
  readonly toolCalls: readonly ChatToolCall[];
  readonly finishReason: "stop" | "length" | "tool_calls" | "content_filter";
  readonly usage: ChatUsage;
  /** troupe's additional fields. */
  readonly more: JsonObject;
}

export async function usageOf({ runtime }: Pick<Caller, "runtime">, { agent, turnId }: Answering): Promise<ChatUsage> {
  const accounts = await runtime.accounts(agent.rootAgentId);
  const use = totalUse(accounts.find((account) => account.turnId === turnId)?.models ?? {});
  return {
    prompt_tokens: use.inputTokens,
    completion_tokens: use.outputTokens,
    total_tokens: use.inputTokens + use.outputTokens,
    prompt_tokens_details: { cached_tokens: use.cachedInputTokens },
    completion_tokens_details: { reasoning_tokens: use.reasoningTokens },
  };
}

/** The stored part of a request's answer, and its last step. */
export async function storedText(
  { caller, chat }: Asking,
  { agent, saidId, turnId }: Answering,
): Promise<{ readonly text: string; readonly step: number }> {
  const items = answerTo(await shownItems(caller, agent, { wholeAnswers: answersWhole(chat) }), saidId);
  const steps = items.map(({ id }) =>
    id.startsWith(`${turnId}:`) ? Number.parseInt(id.slice(turnId.length + 1), 10) : 0,
  );
  return { text: items.map(({ text }) => text).join(GAP), step: Math.max(0, ...steps.filter(Number.isFinite)) };
}

/** The answer of a turn at rest; an error for a turn that has failed or is paused. */
export async function answerOf(
  asking: Asking,
  answering: Answering,
  rest: TurnRest,
): Promise<ChatAnswer | ProtocolError> {
  if (rest.status === "failed") {
    return {
      message: rest.error?.message ?? rest.text,
      type: "server_error",
      param: null,
      code: rest.error?.code ?? rest.stopReason,
    };
  }
  if (rest.status === "waiting" && rest.reason === "paused") {
    return {
      message: "the agent is paused; send the request again when it is resumed",
      type: "server_error",
      param: null,
      code: "paused",
    };
  }
  const requests = rest.status === "waiting" ? rest.requests : [];
  const calls = requests.filter(({ kind }) => kind === "client");
  return {
    text: (await storedText(asking, answering)).text,
    toolCalls: calls.map(toolCallOf),
    finishReason: calls.length > 0 ? "tool_calls" : finishReasonOf(rest),
    usage: await usageOf(asking.caller, answering),
    more: moreOf(asking, answering, rest),
  };
}

function toolCallOf({ requestId, name, arguments: args }: AgentRequest): ChatToolCall {
  return { id: toolCallIdOf(requestId), type: "function", function: { name, arguments: JSON.stringify(args) } };
}

function finishReasonOf(rest: TurnRest): ChatAnswer["finishReason"] {
  if (rest.status === "waiting") return "stop";
  if (rest.stopReason === "refusal") return "content_filter";
  if (rest.status === "completed") return rest.stopReason === "finish_reason" ? "length" : "stop";
  return ["stop_requested", "user_requested"].includes(rest.stopReason) ? "stop" : "length";
}

/** The `troupe` fields at the start of an answer: its agent and its turn. */
export function troupeFields({ conversation }: Pick<Asking, "conversation">, { agent, turnId }: Answering): JsonObject {
  return {
    agentId: agent.agentId,
    turnId,
    ...(conversation === undefined ? {} : { conversation: conversation.name }),
  };
}

function moreOf(asking: Pick<Asking, "conversation">, answering: Answering, rest: TurnRest): JsonObject {
  const requests = rest.status === "waiting" && rest.reason === "request" ? rest.requests : [];
  return {
    ...troupeFields(asking, answering),
    status: rest.status,
    ...("stopReason" in rest ? { stopReason: rest.stopReason } : {}),
    requests: requests.map(({ requestId, kind, name, prompt, arguments: args, argumentsHash, expiresAt }) => ({
      requestId,
      kind,
      name,
      prompt,
      arguments: args,
      argumentsHash,
      expiresAt,
    })),
  };
}
