import type { Redactor } from "../base/index.ts";
import {
  callIdOf,
  meantCall,
  type Message,
  type TroupeEvent,
  textOf,
  type TroupeEventOf,
  type Usage,
} from "../state/index.ts";
import type { JournalSource } from "./listen.ts";
import { oneLine } from "./plain-text.ts";

/*
 * Names are those of OpenTelemetry's semantic conventions for generative AI, which are still under development; names
 * outside these conventions start with `troupe.`.
 */

/** Attribute values of a span. */
export type SpanAttributes = Readonly<Record<string, string | number | boolean | readonly string[]>>;

export interface SpanError {
  /** One of few values: a code, never a text. */
  readonly type: string;
  /** The text; only recorded with contents. */
  readonly message: string;
}

export type TurnEnd = TroupeEventOf<"turn.completed" | "turn.stopped" | "turn.failed">;
export type ToolEnd = TroupeEventOf<"tool.completed" | "tool.failed">;

export interface SpanOptions {
  /** Includes prompts, answers, arguments, results and error texts. */
  readonly captureContent: boolean;
  /** `gen_ai.provider.name`, for instance `openai`. */
  readonly providerName?: string | undefined;
}

const longestName = 100;

/** Shortens a name for a span: a model may have made up the names of agents, models and tools. */
export function shortName(name: string): string {
  return oneLine(name, longestName);
}

function agentAttributes(event: TroupeEvent, operation: string): SpanAttributes {
  return {
    "gen_ai.operation.name": operation,
    "gen_ai.agent.id": event.agentId,
    "gen_ai.agent.name": event.agentName,
    // One id for the whole tree: all messages of a session, by any agent.
    "gen_ai.conversation.id": event.sessionId ?? event.rootAgentId,
    ...(event.turnId === null ? {} : { "troupe.turn.id": event.turnId }),
  };
}

/** Attributes of a request to a model's provider. */
export function modelAttributes(event: TroupeEvent, operation: string, { providerName }: SpanOptions): SpanAttributes {
  const provider = providerName === undefined ? {} : { "gen_ai.provider.name": providerName };
  return { ...agentAttributes(event, operation), ...provider };
}

/** The settings of a model call. */
export function settingsAttributes({ settings = {} }: TroupeEventOf<"step.started">): SpanAttributes {
  const { temperature, maxOutputTokens, stopSequences, reasoningEffort } = settings;
  return {
    ...(temperature === undefined ? {} : { "gen_ai.request.temperature": temperature }),
    ...(maxOutputTokens === undefined ? {} : { "gen_ai.request.max_tokens": maxOutputTokens }),
    ...(stopSequences === undefined ? {} : { "gen_ai.request.stop_sequences": stopSequences }),
    ...(reasoningEffort === undefined ? {} : { "gen_ai.request.reasoning.level": reasoningEffort }),
  };
}

export function turnStartAttributes(event: TroupeEventOf<"turn.started">, options: SpanOptions): SpanAttributes {
  return {
    ...modelAttributes(event, "invoke_agent", options),
    "troupe.turn.number": event.number,
    ...(options.captureContent ? { "gen_ai.input.messages": messages("user", event.prompt) } : {}),
  };
}

export function turnEndAttributes(event: TurnEnd, options: SpanOptions): SpanAttributes {
  return {
    ...usageAttributes(event.usage, event.costMicros),
    "troupe.turn.status": event.type.slice("turn.".length),
    "troupe.turn.stop_reason": event.stopReason,
    "troupe.turn.steps": event.steps,
    "troupe.turn.tool_calls": event.toolCalls,
    ...(options.captureContent ? { "gen_ai.output.messages": messages("assistant", event.text) } : {}),
  };
}

/** Only a failed turn is an error; a stopped turn was stopped on purpose. */
export function turnError(event: TurnEnd): SpanError | null {
  if (event.type !== "turn.failed") return null;
  return { type: event.error?.code ?? event.stopReason, message: event.error?.message ?? event.message ?? "" };
}

export function toolError(event: ToolEnd): SpanError | null {
  if (event.type === "tool.completed") return null;
  return { type: event.error?.code ?? event.outcome, message: event.error?.message ?? "" };
}

export function usageAttributes(usage: Usage, costMicros: number | null): SpanAttributes {
  const { inputTokens, outputTokens, cachedInputTokens, cacheWriteTokens, reasoningTokens } = usage;
  return {
    "gen_ai.usage.input_tokens": inputTokens,
    "gen_ai.usage.output_tokens": outputTokens,
    ...(cachedInputTokens === undefined ? {} : { "gen_ai.usage.cache_read.input_tokens": cachedInputTokens }),
    ...(cacheWriteTokens === undefined ? {} : { "gen_ai.usage.cache_creation.input_tokens": cacheWriteTokens }),
    ...(reasoningTokens === undefined ? {} : { "gen_ai.usage.reasoning.output_tokens": reasoningTokens }),
    ...(costMicros === null ? {} : { "troupe.cost.usd": costMicros / 1_000_000 }),
  };
}

export function toolAttributes(event: TroupeEvent, callId: string, name: string, type: string): SpanAttributes {
  return {
    ...agentAttributes(event, "execute_tool"),
    "gen_ai.tool.name": shortName(name),
    "gen_ai.tool.call.id": callId,
    "gen_ai.tool.type": type,
  };
}

/** Attributes that an event without a span adds to its turn's span; `undefined` for none. */
export function noteAttributes(event: TroupeEvent): SpanAttributes | undefined {
  switch (event.type) {
    case "turn.steered":
      return { "troupe.step": event.step ?? 0 };
    case "turn.waiting":
      return { "troupe.reason": event.reason };
    case "request.opened":
      return { "troupe.request.id": event.requestId, "troupe.request.kind": event.kind };
    case "request.decided":
      return { "troupe.request.id": event.requestId, "troupe.request.verdict": event.verdict };
    case "budget.warning":
    case "budget.exhausted":
      return {
        "troupe.budget.limit": event.limit,
        "troupe.budget.account": event.accountId,
        ...(event.used === undefined ? {} : { "troupe.budget.used": event.used }),
        ...(event.max === undefined ? {} : { "troupe.budget.max": event.max }),
      };
    case "context.compacted":
      return { "troupe.compaction.strategy": event.strategy, "troupe.compaction.messages": event.messages };
    case "artifact.saved":
      return { "troupe.artifact.id": event.artifactId, "troupe.artifact.size": event.size };
    case "warning":
      return { "troupe.warning.code": event.code };
    default:
      return undefined;
  }
}

/** A message in the form of the conventions: JSON text, because spans have no structured values. */
function messages(role: "user" | "assistant", text: string): string {
  return JSON.stringify([{ role, parts: [{ type: "text", content: text }] }]);
}

/** Whether the messages of this event contain content for its span. */
export function hasContent({ type }: TroupeEvent): boolean {
  return type === "model.responded" || type === "tool.completed" || type === "tool.failed";
}

/** Answers, arguments and results, which events do not contain: read from the stored messages. */
export async function contentAttributes(
  { stores, tenant }: JournalSource,
  event: TroupeEvent,
  redactor: Redactor,
): Promise<SpanAttributes> {
  const { turnId, step, agentId } = event;
  if (turnId === null || step === null) return {};
  const callId = "callId" in event && event.callId !== null ? event.callId : undefined;
  const ids = [answerIdOf(turnId, step), ...(callId === undefined ? [] : [callId])];
  const messages = await stores.messagesById({ tenant, agentId }, ids);
  const shown = redactor.value(event.type === "model.responded" ? answer(messages) : call(messages, callId));
  return Object.fromEntries(
    Object.entries(shown as Record<string, unknown>).map(([name, value]) => [
      name,
      typeof value === "string" ? value : JSON.stringify(value),
    ]),
  );
}

/** The id of an answer's message equals the ids of its calls without their index. */
function answerIdOf(turnId: string, step: number): string {
  return callIdOf(turnId, step, 0).replace(/:0$/, "");
}

function answer(messages: readonly Message[]): Record<string, unknown> {
  const message = messages.find(({ role }) => role === "assistant");
  if (message?.role !== "assistant") return {};
  const calls = (message.toolCalls ?? []).map(({ callId, name, arguments: text }) => ({
    type: "tool_call",
    id: callId,
    name,
    arguments: parsed(text),
  }));
  const text = textOf(message.content);
  const parts = [...(text === "" ? [] : [{ type: "text", content: text }]), ...calls];
  return { "gen_ai.output.messages": [{ role: "assistant", parts }] };
}

function call(messages: readonly Message[], callId: string | undefined): Record<string, unknown> {
  const content: Record<string, unknown> = {};
  for (const message of messages) {
    if (message.role === "tool") content["gen_ai.tool.call.result"] = textOf(message.content);
    if (message.role !== "assistant") continue;
    const asked = message.toolCalls?.find((one) => one.callId === callId);
    if (asked) content["gen_ai.tool.call.arguments"] = parsed(meantCall(asked).arguments);
  }
  return content;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
}
