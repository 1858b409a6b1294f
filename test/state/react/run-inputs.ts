import {
  agentTransition,
  initialAgentState,
  type ReactInput,
  type ReactState,
} from "../../../src/state/react/index.ts";

export function user(messageId: string, timestamp = 1000): ReactInput {
  return { type: "user-message-received", messageId, content: `text of ${messageId}`, timestamp };
}

export function started(messageId: string, timestamp = 1000): ReactInput {
  return { type: "llm-message-started", messageId, timestamp };
}

export function completed(messageId: string, content = "done", timestamp = 1000): ReactInput {
  return { type: "llm-message-completed", messageId, content, timestamp };
}

/** Without `calledLlmOrdinal` the machine derives the start of the call. */
export function goesOn(toolCallIds: readonly string[], calledLlmOrdinal?: number): ReactInput {
  const request = { name: "search", parameters: '{"query":"x"}', calledAt: 1000 };
  const toolCalls = Object.fromEntries(toolCallIds.map((id) => [id, request]));
  return observed({ type: "continue-re-act", toolCalls }, calledLlmOrdinal);
}

export function finishes(calledLlmOrdinal?: number, calledLlmAt = 1000): ReactInput {
  return observed({ type: "complete-re-act" }, calledLlmOrdinal, calledLlmAt);
}

function observed(
  observation: Extract<ReactInput, { type: "re-act-observed" }>["observation"],
  calledLlmOrdinal?: number,
  calledLlmAt = 1000,
): ReactInput {
  const input = { type: "re-act-observed" as const, timestamp: 1000, calledLlmAt, observation };
  return calledLlmOrdinal === undefined ? input : { ...input, calledLlmOrdinal };
}

export function result(toolCallId: string, timestamp = 1000): ReactInput {
  const value = { isSuccess: true as const, content: `result of ${toolCallId}`, receivedAt: timestamp };
  return { type: "tool-call-completed", toolCallId, result: value, timestamp };
}

export const expanded: ReactInput = { type: "context-window-expanded", timestamp: 1000 };

export function reloaded(toolCallIds: readonly string[]): ReactInput {
  return { type: "history-tool-calls-added", toolCallIds, timestamp: 1000 };
}

export function runInputs(inputs: readonly ReactInput[], from: ReactState = initialAgentState()): ReactState {
  return inputs.reduce((state, input) => agentTransition(input)(state), from);
}
