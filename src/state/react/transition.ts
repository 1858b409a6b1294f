import type {
  FoldedCall,
  FoldedReact,
  ReactMessage,
  ReactRecordedResult,
  ReactState,
  ReactToolCallRequest,
  ReactToolDefinition,
} from "./state.ts";
import { InvalidInputError } from "../../errors/index.ts";
import type {
  ReactHistoryToolCallsAdded,
  ReactInput,
  ReactLlmMessageCompleted,
  ReactObserved,
  ReactToolCallCompleted,
} from "./input.ts";

/** The number of latest messages with which a loop starts, if there are as many. */
export const reactInitialWindowSize = 10;

/** What `initialAgentState()` takes. */
export interface InitialAgentStateOptions {
  /** External tools by name. Default: none. */
  readonly tools?: Readonly<Record<string, ReactToolDefinition>>;
}

/** The state before the first input. */
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

/** Options of `agentTransition()`. */
export interface AgentTransitionOptions {
  /** The number of messages by which `context-window-expanded` widens the window. Positive integer, default 10. */
  readonly expandContextWindowSize?: number;
}

/** A state, independent of how its calls are stored. */
type StateOf<Kept> = Omit<ReactState, "toolCalls"> & { readonly toolCalls: Kept };

/** A new state before it is returned: `advance` sets its ordinals. */
type Changed<Kept> = StateOf<Kept> & { ordinal: number; callDueOrdinal: number | null };

type NewCall = readonly [id: string, request: ReactToolCallRequest];

/** The operations on a collection of calls. */
interface Keeping<Kept> {
  has(kept: Kept, id: string): boolean;
  add(kept: Kept, calls: readonly NewCall[]): Kept;
  /** `undefined` for a call that is unknown or already has its result. */
  complete(kept: Kept, id: string, result: ReactRecordedResult): Kept | undefined;
  /** The highest ordinal of these calls' results, -1 without calls; `null` if one of them has no result. */
  newestResult(kept: Kept, ids: readonly string[]): number | null;
}

/** An input in the core's form: an observation has its calls, or `null` if the loop is done. */
export type ReactStep =
  | Exclude<ReactInput, ReactObserved>
  | (Omit<ReactObserved, "observation"> & { readonly calls: readonly NewCall[] | null });

/**
 * The transition of the ReAct core: pure, the given state is never changed. An input that changes nothing (a known message id or result,
 * an unknown id) returns the same object. Inputs are not parsed: parse input from outside with `reactInputSchema`.
 *
 * @throws InvalidInputError if `expandContextWindowSize` is not a positive integer.
 */
export function agentTransition(
  input: ReactInput,
  options: AgentTransitionOptions = {},
): (state: ReactState) => ReactState {
  const expandBy = options.expandContextWindowSize ?? DEFAULT_EXPANSION;
  if (!Number.isSafeInteger(expandBy) || expandBy < 1) {
    throw new InvalidInputError(`expandContextWindowSize is ${expandBy}; it must be a positive integer`);
  }
  const step = stepOf(input);
  return (state) => advance(state, step, byId, expandBy);
}

/** The same transition for the runtime's own turns, whose calls are a list. */
export function foldReact(react: FoldedReact, step: ReactStep): FoldedReact {
  return advance(react, step, inOrder, DEFAULT_EXPANSION);
}

const DEFAULT_EXPANSION = 10;

/** Converts an input to the core's form. */
export function stepOf(input: ReactInput): ReactStep {
  if (input.type !== "re-act-observed") return input;
  const { observation, ...observed } = input;
  return { ...observed, calls: observation.type === "complete-re-act" ? null : Object.entries(observation.toolCalls) };
}

function advance<Kept>(state: StateOf<Kept>, step: ReactStep, calls: Keeping<Kept>, expandBy: number): StateOf<Kept> {
  const ordinal = state.ordinal + 1;
  const next = changed(state, step, calls, { ordinal, expandBy });
  if (next === null) return state;
  next.ordinal = ordinal;
  // The observation ends the due call: a call that is due afterwards is a new one.
  const dueBefore = step.type === "re-act-observed" ? null : state.callDueOrdinal;
  next.callDueOrdinal = isDue(next, calls) ? (dueBefore ?? ordinal) : null;
  return next;
}

/** The state with the changes of an input; `null` if nothing changed. */
function changed<Kept>(
  state: StateOf<Kept>,
  step: ReactStep,
  calls: Keeping<Kept>,
  { ordinal, expandBy }: { readonly ordinal: number; readonly expandBy: number },
): Changed<Kept> | null {
  switch (step.type) {
    case "user-message-received":
      return addMessage(state, messageOf(step, "user", step.content, ordinal));
    case "llm-message-started":
      return addMessage(state, messageOf(step, "assistant", "", ordinal));
    case "llm-message-completed":
      return completeMessage(state, step);
    case "re-act-observed":
      return observe(state, step, calls, ordinal);
    case "tool-call-completed":
      return completeToolCall(state, step, calls, ordinal);
    case "context-window-expanded":
      return expandWindow(state, expandBy);
    case "history-tool-calls-added":
      return addToolCalls(state, step, calls);
    default:
      step satisfies never;
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

function addMessage<Kept>(state: StateOf<Kept>, message: ReactMessage): Changed<Kept> | null {
  if (state.messages.some(({ id }) => id === message.id)) return null;
  const messages = [...state.messages, message];
  const { reActContext } = state;
  if (reActContext.contextWindowSize >= reactInitialWindowSize) return { ...state, messages };
  // The window was smaller than its initial size only because there were too few messages.
  const contextWindowSize = Math.min(reactInitialWindowSize, messages.length);
  return { ...state, messages, reActContext: { ...reActContext, contextWindowSize } };
}

function completeMessage<Kept>(state: StateOf<Kept>, input: ReactLlmMessageCompleted): Changed<Kept> | null {
  const index = state.messages.findLastIndex(({ id }) => id === input.messageId);
  const message = state.messages[index];
  if (message === undefined || !message.isStreaming) return null;
  const messages = state.messages.with(index, { ...message, content: input.content, isStreaming: false });
  return { ...state, messages };
}

function observe<Kept>(
  state: StateOf<Kept>,
  { calledLlmAt, calledLlmOrdinal: given, calls: requested }: Extract<ReactStep, { type: "re-act-observed" }>,
  calls: Keeping<Kept>,
  ordinal: number,
): Changed<Kept> | null {
  // Calls of one agent follow each other, so each starts later than the last observed one.
  if (given !== undefined && given <= state.calledLlmOrdinal) return null;
  const calledLlmOrdinal =
    given === undefined ? (state.callDueOrdinal ?? state.calledLlmOrdinal) : Math.min(given, state.ordinal);

  if (requested === null) {
    const contextWindowSize = Math.min(reactInitialWindowSize, state.messages.length);
    const reActContext = { contextWindowSize, toolCallIds: [], continuedOrdinal: null };
    return { ...state, calledLlmAt, calledLlmOrdinal, reActContext };
  }

  const { reActContext } = state;
  const added = requested.filter(([id]) => !calls.has(state.toolCalls, id));
  if (added.length === 0) {
    // The observation has only known calls and no ordinal, so it is a repeated delivery of the last one.
    if (given === undefined && requested.length > 0) return null;
    return { ...state, calledLlmAt, calledLlmOrdinal, reActContext: { ...reActContext, continuedOrdinal: ordinal } };
  }
  const toolCallIds = [...reActContext.toolCallIds, ...added.map(([id]) => id)];
  return {
    ...state,
    calledLlmAt,
    calledLlmOrdinal,
    toolCalls: calls.add(state.toolCalls, added),
    reActContext: { ...reActContext, toolCallIds },
  };
}

function completeToolCall<Kept>(
  state: StateOf<Kept>,
  { toolCallId, result }: ReactToolCallCompleted,
  calls: Keeping<Kept>,
  ordinal: number,
): Changed<Kept> | null {
  const toolCalls = calls.complete(state.toolCalls, toolCallId, { ...result, ordinal });
  return toolCalls === undefined ? null : { ...state, toolCalls };
}

function expandWindow<Kept>(state: StateOf<Kept>, expandBy: number): Changed<Kept> | null {
  const { reActContext } = state;
  const contextWindowSize = Math.min(reActContext.contextWindowSize + expandBy, state.messages.length);
  if (contextWindowSize === reActContext.contextWindowSize) return null;
  return { ...state, reActContext: { ...reActContext, contextWindowSize } };
}

function addToolCalls<Kept>(
  state: StateOf<Kept>,
  input: ReactHistoryToolCallsAdded,
  calls: Keeping<Kept>,
): Changed<Kept> | null {
  const { reActContext, toolCalls } = state;
  const ids = new Set(reActContext.toolCallIds);
  for (const id of input.toolCallIds) if (calls.has(toolCalls, id)) ids.add(id);
  if (ids.size === reActContext.toolCallIds.length) return null;
  return { ...state, reActContext: { ...reActContext, toolCallIds: [...ids] } };
}

/** The calls in a plain object, as in a user's state. */
const byId: Keeping<ReactState["toolCalls"]> = {
  has: (kept, id) => Object.hasOwn(kept, id),
  // Spread and fromEntries define keys; an assignment would go through `__proto__`.
  add: (kept, calls) => ({
    ...kept,
    ...Object.fromEntries(
      calls.map(([id, { name, parameters, calledAt }]) => [id, { name, parameters, calledAt, result: null }]),
    ),
  }),
  complete(kept, id, result) {
    const record = Object.hasOwn(kept, id) ? kept[id] : undefined;
    return record?.result === null ? { ...kept, [id]: { ...record, result } } : undefined;
  },
  newestResult(kept, ids) {
    let newest = -1;
    for (const id of ids) {
      const result = kept[id]?.result;
      if (result == null) return null;
      newest = Math.max(newest, result.ordinal);
    }
    return newest;
  },
};

/** The calls in a list, in order: copying it costs a hundredth of copying an object with as many keys. */
const inOrder: Keeping<readonly FoldedCall[]> = {
  has: (kept, id) => lastOf(kept, id) >= 0,
  add: (kept, calls) => [
    ...kept,
    ...calls.map(([id, { name, parameters, calledAt }]) => ({ id, name, parameters, calledAt, result: null })),
  ],
  complete(kept, id, result) {
    const index = lastOf(kept, id);
    const call = kept[index];
    if (call?.result !== null) return undefined;
    const next = kept.slice();
    next[index] = { ...call, result };
    return next;
  },
  newestResult(kept, ids) {
    let newest = -1;
    // Calls enter the context in order, except those that were loaded into it again.
    let at = kept.length - 1;
    for (let index = ids.length - 1; index >= 0; index -= 1) {
      if (kept[at]?.id !== ids[index]) at = lastOf(kept, ids[index]);
      const result = kept[at]?.result;
      if (result == null) return null;
      if (result.ordinal > newest) newest = result.ordinal;
      at -= 1;
    }
    return newest;
  },
};

function lastOf(calls: readonly FoldedCall[], id: string | undefined): number {
  let index = calls.length - 1;
  while (index >= 0 && calls[index]?.id !== id) index -= 1;
  return index;
}

/** The effects that a state requires. */
export interface ReactEffects {
  /** Whether the model must be called. */
  readonly callLlm: boolean;
  /** Ids of the calls in context without a result, in the order in which they entered it. */
  readonly runTools: readonly string[];
}

/**
 * The effects that a state requires: a tool run for each call in context without a result; the model only if every call in context has
 * its result and the last call has not seen the newest input.
 */
export function effectsAt(state: ReactState): ReactEffects {
  const runTools = state.reActContext.toolCallIds.filter((id) => state.toolCalls[id]?.result == null);
  return { callLlm: isLlmCallDue(state), runTools };
}

/** The same for the fold of a turn: whether the model must be called, and whether any tool must be run. */
export function needsOf(react: FoldedReact): { readonly callLlm: boolean; readonly runsTools: boolean } {
  const runsTools = inOrder.newestResult(react.toolCalls, react.reActContext.toolCallIds) === null;
  return { callLlm: !runsTools && isDue(react, inOrder), runsTools };
}

/**
 * Whether the model must be called. It must see a user's message, the result of a call in context, or its own request to continue without
 * a call. Its own messages and a wider window are not new input: they come from a running call.
 */
export function isLlmCallDue(state: ReactState): boolean {
  return isDue(state, byId);
}

function isDue<Kept>(state: StateOf<Kept>, calls: Keeping<Kept>): boolean {
  const { calledLlmOrdinal, messages } = state;
  const { toolCallIds, continuedOrdinal } = state.reActContext;
  const newest = calls.newestResult(state.toolCalls, toolCallIds);
  if (newest === null) return false;
  if (newest > calledLlmOrdinal || (continuedOrdinal !== null && continuedOrdinal > calledLlmOrdinal)) return true;
  // Messages are in the order of their ordinals, so searching from the end can stop at the first one already seen.
  for (let index = messages.length - 1; index >= 0; index -= 1) {
    const message = messages[index];
    if (message === undefined || message.ordinal <= calledLlmOrdinal) return false;
    if (message.role === "user") return true;
  }
  return false;
}
