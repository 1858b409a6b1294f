import type { ReactState, ReactToolDefinition } from "./state.ts";

/** How many of the latest messages a loop starts with, as far as there are so many. */
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
