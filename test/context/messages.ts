import type { Message, ToolCallRequest } from "../../src/state/index.ts";

/** Id of the n-th turn of the one agent of these tests. */
export function turn(number: number): string {
  return `agent#${number}`;
}

export function input(turnId: string, content = `asks in ${turnId}`): Message {
  return { id: `${turnId}:in`, role: "user", createdAt: 1, content, origin: "user" };
}

export function call(turnId: string, step: number, index = 0): ToolCallRequest {
  const callId = `${turnId}:${step}:${index}`;
  return { callId, providerId: `provider-${callId}`, name: "search", arguments: `{"at":${step}}` };
}

/** A step as the runtime writes it: the message with the calls, then their results. */
export function round(turnId: string, step: number, calls = 1, content = ""): Message[] {
  const metadata = { step_id: `${turnId}:${step}`, execution_id: turnId, is_trace: true };
  const toolCalls = Array.from({ length: calls }, (_, index) => call(turnId, step, index));
  return [
    { id: `${turnId}:${step}`, role: "assistant", createdAt: 1, content, origin: "model", toolCalls, metadata },
    ...toolCalls.map(
      ({ callId, providerId }): Message => ({
        id: `${callId}:result`,
        role: "tool",
        createdAt: 1,
        content: `result of ${callId}`,
        origin: "tool",
        callId,
        providerId,
        metadata,
      }),
    ),
  ];
}

export function answer(turnId: string, step: number, content = `answers in ${turnId}`): Message {
  const metadata = { step_id: `${turnId}:${step}`, execution_id: turnId };
  return { id: `${turnId}:${step}`, role: "assistant", createdAt: 1, content, origin: "model", metadata };
}

export function hookMessage(turnId: string, step: number, role: "user" | "system" = "user"): Message {
  const metadata = { step_id: `${turnId}:${step}`, execution_id: turnId, is_trace: true };
  return { id: `${turnId}:${step}:hook`, role, createdAt: 1, content: "a note", origin: "hook:notes", metadata };
}

export function summary(turnId: string, step: number): Message {
  const metadata = { step_id: `${turnId}:${step}`, execution_id: turnId, is_trace: true };
  const id = `${turnId}:${step}:compact`;
  return { id, role: "user", createdAt: 1, content: `what was before ${id}`, origin: "compaction", metadata };
}

/** A turn with an input, `rounds` rounds of calls and an answer. */
export function wholeTurn(number: number, rounds = 1): Message[] {
  const turnId = turn(number);
  const steps = Array.from({ length: rounds }, (_, index) => round(turnId, index + 1));
  return [input(turnId), ...steps.flat(), answer(turnId, rounds + 1)];
}

export function idsOf(messages: readonly Message[]): string[] {
  return messages.map(({ id }) => id);
}
