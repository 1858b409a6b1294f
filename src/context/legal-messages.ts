import { deepFreeze } from "../base/index.ts";
import type { Message, ToolCallRequest, ToolMessage } from "../state/index.ts";
import { type Round, roundsOf } from "./rounds.ts";

/** What stands in for a result that the model cannot be shown. */
export const ABSENT_RESULT = "The result of this call is not in the context.";

/**
 * The same messages in an order that every provider accepts: each call has exactly one result right behind its message,
 * in the order of the calls. A missing result is filled in with one that says so; results without their call and second
 * results are dropped; what stood between a call and its results stands behind them. Everything else keeps its order.
 * Linear in the number of messages; the very same array when nothing has to change.
 */
export function legalMessages(messages: readonly Message[]): readonly Message[] {
  if (isLegal(messages) === undefined) return messages;
  const rounds = roundsOf(messages);
  const legal: Message[] = [];
  for (const [index, message] of messages.entries()) {
    if (message.role === "tool") continue;
    const round = rounds.get(index);
    if (round) appendRound(legal, round);
    else legal.push(message);
  }
  return legal;
}

function appendRound(messages: Message[], { message, calls, results }: Round): void {
  const isWhole = calls === message.toolCalls;
  messages.push(isWhole ? message : deepFreeze({ ...message, toolCalls: [...calls] }));
  for (const [place, call] of calls.entries()) {
    const result = results[place] ?? absentResult(call, message.createdAt);
    // A provider knows the call by its own id only.
    messages.push(
      result.providerId === call.providerId ? result : Object.freeze({ ...result, providerId: call.providerId }),
    );
  }
}

function absentResult({ callId, providerId }: ToolCallRequest, createdAt: number): ToolMessage {
  return Object.freeze({
    id: `${callId}:absent`,
    role: "tool",
    callId,
    providerId,
    createdAt,
    content: ABSENT_RESULT,
    isError: true,
    origin: "runtime",
  });
}

/** What is wrong with the order of the messages, in words; undefined when each call has its one result right behind it. */
export function isLegal(messages: readonly Message[]): string | undefined {
  let index = 0;
  for (let message = messages[index]; message !== undefined; message = messages[index]) {
    if (message.role === "tool") return `message ${index} is the result of ${message.callId}, which is not due there`;
    const calls = (message.role === "assistant" && message.toolCalls) || [];
    const fault = roundFault(messages, index, calls);
    if (fault !== undefined) return fault;
    index += 1 + calls.length;
  }
  return undefined;
}

function roundFault(
  messages: readonly Message[],
  index: number,
  calls: readonly ToolCallRequest[],
): string | undefined {
  for (const [place, { callId, providerId }] of calls.entries()) {
    const result = messages[index + 1 + place];
    const found = result?.role === "tool" ? `the result of ${result.callId}` : (result?.role ?? "nothing");
    if (result?.role !== "tool" || result.callId !== callId) {
      return `message ${index + 1 + place} is ${found}, where the result of ${callId} is due`;
    }
    if (result.providerId !== providerId) return `the result of ${callId} has another provider id than its call`;
  }
  if (calls.length > 1 && new Set(calls.map(({ callId }) => callId)).size < calls.length) {
    return `message ${index} has one call twice`;
  }
  return undefined;
}
