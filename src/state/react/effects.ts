import type { ReactState } from "./state.ts";

/** What a state calls for. */
export interface ReactEffects {
  /** Whether the model is to be called. */
  readonly callLlm: boolean;
  /** Ids of the calls in context without a result, in the order they came into it. */
  readonly runTools: readonly string[];
}

/**
 * The effects a state calls for (row R5): a tool run for each call in context that has no result; the model only when
 * every call in context has its result and something is there that the last call has not seen.
 */
export function effectsAt(state: ReactState): ReactEffects {
  const runTools = state.reActContext.toolCallIds.filter((id) => state.toolCalls[id]?.result == null);
  return { callLlm: isLlmCallDue(state), runTools };
}

/**
 * Whether the model is to be called. New to it can be a user's message, the result of a call in context, or its own
 * wish to go on without any call. Its own messages and a wider window are not: they come from a call that is running.
 */
export function isLlmCallDue(state: ReactState): boolean {
  const { calledLlmOrdinal, toolCalls, messages } = state;
  const { toolCallIds, continuedOrdinal } = state.reActContext;
  let hasNews = continuedOrdinal !== null && continuedOrdinal > calledLlmOrdinal;
  for (const id of toolCallIds) {
    const result = toolCalls[id]?.result;
    if (result == null) return false;
    if (result.ordinal > calledLlmOrdinal) hasNews = true;
  }
  if (hasNews) return true;
  // Messages stand in the order of their ordinals: from the end, the first one already seen ends the search.
  for (let index = messages.length - 1; index >= 0; index -= 1) {
    const message = messages[index];
    if (message === undefined || message.ordinal <= calledLlmOrdinal) return false;
    if (message.role === "user") return true;
  }
  return false;
}
