import type { Redactor } from "../base/index.ts";
import { callIdOf, type Message, type TroupeEvent, textOf } from "../state/index.ts";
import type { JournalSource } from "./read-events.ts";
import type { SpanAttributes } from "./span-operation.ts";

/** Whether the messages that this event speaks of hold content for its span. */
export function hasContent({ type }: TroupeEvent): boolean {
  return type === "model.responded" || type === "tool.completed" || type === "tool.failed";
}

/** Answers, arguments and results, which events do not carry: from the messages that were stored with them. */
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

/** The message of a model's answer has the id of its calls without their index. */
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
    if (asked) content["gen_ai.tool.call.arguments"] = parsed(asked.arguments);
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
