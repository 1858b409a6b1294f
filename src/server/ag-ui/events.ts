import type { Json, JsonObject } from "../../state/index.ts";

/* The subset of AG-UI 1.0 that this surface sends. Fields without a value are omitted: the protocol forbids null. */

export interface ToolCall {
  readonly id: string;
  readonly type: "function";
  readonly function: { readonly name: string; readonly arguments: string };
}

/** A message of a snapshot. */
export type AgUiMessage = { readonly id: string; readonly subagentRunId?: string } /** Text or parts. */ & (
  | { readonly role: "user" | "system" | "developer"; readonly content: Json }
  | { readonly role: "assistant"; readonly content?: string; readonly toolCalls?: readonly ToolCall[] }
  | { readonly role: "tool"; readonly toolCallId: string; readonly content: string; readonly error?: string }
);

/** A request that a run waits for. */
export interface Interrupt {
  readonly id: string;
  readonly reason: string;
  readonly message: string;
  readonly toolCallId: string;
  readonly responseSchema?: JsonObject;
  /** ISO 8601. */
  readonly expiresAt?: string;
  readonly subagentRunId?: string;
  readonly metadata: JsonObject;
}

export type RunOutcome =
  | { readonly type: "success"; readonly pendingToolCallIds?: readonly string[] }
  | { readonly type: "interrupt"; readonly interrupts: readonly Interrupt[] }
  | { readonly type: "cancelled" };

export interface TokenUsage {
  readonly model: string;
  readonly inputTokens: number;
  readonly outputTokens: number;
  readonly totalTokens: number;
  readonly reasoningTokens: number;
  readonly cachedInputTokens: number;
  readonly cacheWriteInputTokens: number;
}

interface OfRun {
  readonly threadId: string;
  readonly runId: string;
}

interface OfMessage {
  readonly messageId: string;
}

interface OfCall {
  readonly toolCallId: string;
}

type Body =
  | ({ readonly type: "RUN_STARTED"; readonly protocolVersion: "1.0" } & OfRun)
  | ({
      readonly type: "RUN_FINISHED";
      readonly outcome: RunOutcome;
      readonly result?: Json;
      readonly usage?: readonly TokenUsage[];
    } & OfRun)
  | {
      readonly type: "RUN_ERROR";
      readonly message: string;
      readonly code: string;
      readonly usage?: readonly TokenUsage[];
    }
  | { readonly type: "STEP_STARTED" | "STEP_FINISHED"; readonly stepName: string }
  | ({ readonly type: "TEXT_MESSAGE_START"; readonly role: "assistant" } & OfMessage)
  | ({ readonly type: "TEXT_MESSAGE_CONTENT"; readonly delta: string } & OfMessage)
  | ({ readonly type: "TEXT_MESSAGE_END" | "REASONING_START" | "REASONING_MESSAGE_END" | "REASONING_END" } & OfMessage)
  | ({ readonly type: "REASONING_MESSAGE_START"; readonly role: "reasoning" } & OfMessage)
  | ({ readonly type: "REASONING_MESSAGE_CONTENT"; readonly delta: string } & OfMessage)
  | ({ readonly type: "TOOL_CALL_START"; readonly toolCallName: string; readonly parentMessageId: string } & OfCall)
  | ({ readonly type: "TOOL_CALL_ARGS"; readonly delta: string } & OfCall)
  | ({ readonly type: "TOOL_CALL_END" } & OfCall)
  | ({ readonly type: "TOOL_CALL_RESULT"; readonly role: "tool"; readonly content: string } & OfMessage & OfCall)
  | {
      readonly type: "SUBAGENT_STARTED";
      readonly name: string;
      readonly parentSubagentRunId?: string;
      readonly parentToolCallId?: string;
    }
  | {
      readonly type: "SUBAGENT_FINISHED";
      readonly outcome: { readonly type: "success" } | { readonly type: "suspended"; readonly interruptIds?: string[] };
    }
  | { readonly type: "SUBAGENT_ERROR"; readonly message: string; readonly code: string }
  | { readonly type: "MESSAGES_SNAPSHOT"; readonly messages: readonly AgUiMessage[] }
  | { readonly type: "CUSTOM"; readonly name: string; readonly value: JsonObject };

export type AgUiEventBody = Body;
/** An event in its sent form. */
export type AgUiEvent = Body & {
  /** The subagent that the event belongs to; absent for events of the agent itself. */
  readonly subagentRunId?: string;
  /** Milliseconds since the epoch. */
  readonly timestamp?: number;
};
