import {
  type ReactState,
  type ReactMessage,
  type ReactToolCallRecord,
  type ReactToolCallRequest,
  type ReactToolDefinition,
} from "./state.ts";
import { InvalidInputError } from "../../errors/index.ts";
import type {
  ReactHistoryToolCallsAdded,
  ReactInput,
  ReactLlmMessageCompleted,
  ReactObserved,
  ReactToolCallCompleted,
} from "./input.ts";

/** How many of the latest messages a loop starts with, if there are as many. */
export const reactInitialWindowSize = 10;

export interface InitialAgentStateOptions {
  /** External tools by name. Default: none. */
  readonly tools?: Readonly<Record<string, ReactToolDefinition>>;
}

/** The state before the first input (row R1). */
export function initialAgentState(options: InitialAgentStateOptions = {}): ReactState {
  return {
    messages: [],
    tools: options.tools ?? {},
    toolCalls: {},
    reActContext: { contextWindowSize: 0, toolCallIds: [], continuedOrdinal: null },
    calledLlmAt: 0,
    calledLlmOrdinal: -1,
    callDueOrdinal: null,
    ordinal: 0,
  };
}

export interface AgentTransitionOptions {
  /** By how many messages `context-window-expanded` widens the window. Positive integer, default 10. */
  readonly expandContextWindowSize?: number;
}

/** The changes by an input; null if there are none. `agentTransition` adds the ordinal. */
type Change = Partial<ReactState> | null;

/**
 * The transition of the ReAct core (rows R1 to R4): pure, the given state is never changed. An input that changes
 * nothing (a known message id or result, an unknown id) returns the same object.
 * Inputs are not parsed here: parse input from outside with `reactInputSchema`.
 *
 * @throws InvalidInputError when `expandContextWindowSize` is not a positive integer.
 */
export function agentTransition(
  input: ReactInput,
  options: AgentTransitionOptions = {},
): (state: ReactState) => ReactState {
  const expandBy = options.expandContextWindowSize ?? 10;
  if (!Number.isSafeInteger(expandBy) || expandBy < 1) {
    throw new InvalidInputError(`expandContextWindowSize is ${expandBy}; it must be a positive integer`);
  }
  return (state) => {
    const ordinal = state.ordinal + 1;
    const change = changeOf(input, state, ordinal, expandBy);
    if (change === null) return state;
    const next = { ...state, ...change, ordinal };
    // Once observed, the due call is over: a call that is due afterwards is a new one.
    const dueBefore = input.type === "re-act-observed" ? null : state.callDueOrdinal;
    next.callDueOrdinal = isLlmCallDue(next) ? (dueBefore ?? ordinal) : null;
    return next;
  };
}

function changeOf(input: ReactInput, state: ReactState, ordinal: number, expandBy: number): Change {
  switch (input.type) {
    case "user-message-received":
      return addMessage(state, messageOf(input, "user", input.content, ordinal));
    case "llm-message-started":
      return addMessage(state, messageOf(input, "assistant", "", ordinal));
    case "llm-message-completed":
      return completeMessage(state, input);
    case "re-act-observed":
      return observe(state, input, ordinal);
    case "tool-call-completed":
      return completeToolCall(state, input, ordinal);
    case "context-window-expanded":
      return expandWindow(state, expandBy);
    case "history-tool-calls-added":
      return addToolCalls(state, input);
    default:
      input satisfies never;
      return null;
  }
}

function messageOf(
  input: { readonly messageId: string; readonly timestamp: number },
  role: ReactMessage["role"],
  content: string,
  ordinal: number,
): ReactMessage {
  const { messageId: id, timestamp } = input;
  return { id, role, content, timestamp, ordinal, isStreaming: role === "assistant" };
}

function addMessage(state: ReactState, message: ReactMessage): Change {
  if (state.messages.some(({ id }) => id === message.id)) return null;
  const messages = [...state.messages, message];
  const { reActContext } = state;
  if (reActContext.contextWindowSize >= reactInitialWindowSize) return { messages };
  // The window was smaller than its first size only because there were too few messages.
  const contextWindowSize = Math.min(reactInitialWindowSize, messages.length);
  return { messages, reActContext: { ...reActContext, contextWindowSize } };
}

function completeMessage(state: ReactState, input: ReactLlmMessageCompleted): Change {
  const index = state.messages.findLastIndex(({ id }) => id === input.messageId);
  const message = state.messages[index];
  if (message === undefined || !message.isStreaming) return null;
  return { messages: state.messages.with(index, { ...message, content: input.content, isStreaming: false }) };
}

function observe(state: ReactState, input: ReactObserved, ordinal: number): Change {
  const { calledLlmAt, calledLlmOrdinal: given, observation } = input;
  // Calls of one agent follow each other, so each starts later than the last observed one.
  if (given !== undefined && given <= state.calledLlmOrdinal) return null;
  const started =
    given === undefined ? (state.callDueOrdinal ?? state.calledLlmOrdinal) : Math.min(given, state.ordinal);
  const seen = { calledLlmAt, calledLlmOrdinal: started };

  if (observation.type === "complete-re-act") {
    const contextWindowSize = Math.min(reactInitialWindowSize, state.messages.length);
    return { ...seen, reActContext: { contextWindowSize, toolCallIds: [], continuedOrdinal: null } };
  }

  const { reActContext } = state;
  const requested = Object.entries(observation.toolCalls);
  const added = requested.filter(([id]) => !Object.hasOwn(state.toolCalls, id));
  if (added.length === 0) {
    // Only known calls and no ordinal to distinguish it: the same observation was delivered twice.
    if (given === undefined && requested.length > 0) return null;
    return { ...seen, reActContext: { ...reActContext, continuedOrdinal: ordinal } };
  }
  // Spread and fromEntries define keys; an assignment would go through `__proto__`.
  const records = Object.fromEntries(added.map(([id, request]) => [id, recordOf(request)]));
  const toolCalls = { ...state.toolCalls, ...records };
  const toolCallIds = [...reActContext.toolCallIds, ...added.map(([id]) => id)];
  return { ...seen, toolCalls, reActContext: { ...reActContext, toolCallIds } };
}

function recordOf({ name, parameters, calledAt }: ReactToolCallRequest): ReactToolCallRecord {
  return { name, parameters, calledAt, result: null };
}

function completeToolCall(state: ReactState, input: ReactToolCallCompleted, ordinal: number): Change {
  if (!Object.hasOwn(state.toolCalls, input.toolCallId)) return null;
  const record = state.toolCalls[input.toolCallId];
  if (record === undefined || record.result !== null) return null;
  return {
    toolCalls: { ...state.toolCalls, [input.toolCallId]: { ...record, result: { ...input.result, ordinal } } },
  };
}

function expandWindow(state: ReactState, expandBy: number): Change {
  const { reActContext } = state;
  const contextWindowSize = Math.min(reActContext.contextWindowSize + expandBy, state.messages.length);
  if (contextWindowSize === reActContext.contextWindowSize) return null;
  return { reActContext: { ...reActContext, contextWindowSize } };
}

function addToolCalls(state: ReactState, input: ReactHistoryToolCallsAdded): Change {
  const { reActContext, toolCalls } = state;
  const ids = new Set(reActContext.toolCallIds);
  for (const id of input.toolCallIds) if (Object.hasOwn(toolCalls, id)) ids.add(id);
  if (ids.size === reActContext.toolCallIds.length) return null;
  return { reActContext: { ...reActContext, toolCallIds: [...ids] } };
}

/** The effects that a state needs. */
export interface ReactEffects {
  /** Whether the model is to be called. */
  readonly callLlm: boolean;
  /** Ids of the calls in context without a result, in the order they came into it. */
  readonly runTools: readonly string[];
}

/**
 * The effects that a state needs (row R5): a tool run for each call in context without a result; the model only if
 * every call in context has its result and there is something that the last call has not seen.
 */
export function effectsAt(state: ReactState): ReactEffects {
  const runTools = state.reActContext.toolCallIds.filter((id) => state.toolCalls[id]?.result == null);
  return { callLlm: isLlmCallDue(state), runTools };
}

/**
 * Whether the model is to be called. New to it can be a user's message, the result of a call in context, or its own
 * request to go on without any call. Its own messages and a wider window are not new: they come from a running call.
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
  // Messages are in the order of their ordinals, so searching from the end can stop at the first one already seen.
  for (let index = messages.length - 1; index >= 0; index -= 1) {
    const message = messages[index];
    if (message === undefined || message.ordinal <= calledLlmOrdinal) return false;
    if (message.role === "user") return true;
  }
  return false;
}
