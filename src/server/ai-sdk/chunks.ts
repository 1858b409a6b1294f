import type { Json, JsonObject, TroupeEventOf } from "../../state/index.ts";

/* The subset of the UI message stream of AI SDK 7 that this surface sends, and its typed additions. */

/** The metadata of an answer: `UIMessage<AiSdkMetadata, AiSdkData>`. */
export interface AiSdkMetadata {
  /** The turn; also the id of the message. */
  readonly turnId: string;
  /** `waiting`: for an approval, an answer or the result of a tool of the page. */
  readonly status: "running" | "waiting" | "paused" | "completed" | "stopped" | "failed";
  /** Why the turn ended, such as `user_requested` or `cost_limit`. Absent while it is open. */
  readonly stopReason?: string;
  /** Explanation of a stop or an error. Absent for a turn that completed. */
  readonly message?: string;
  /** Tokens of the turn with its subagents. */
  readonly usage?: AiSdkUsage;
  /** Dollars of the turn with its subagents; absent if a price is unknown. */
  readonly cost?: number;
}

/** Tokens of a turn. */
export interface AiSdkUsage {
  /** Tokens of the prompts, including cached ones. */
  readonly inputTokens: number;
  /** Tokens of the answers, including reasoning. */
  readonly outputTokens: number;
  /** The sum of both. */
  readonly totalTokens: number;
  /** Part of `outputTokens`. */
  readonly reasoningTokens: number;
  /** Part of `inputTokens`. */
  readonly cachedInputTokens: number;
}

/** The `data-*` parts of an answer. */
export type AiSdkData = {
  /** A subagent, one part for each. */
  readonly subagent: {
    readonly agentId: string;
    /** Name of its definition. */
    readonly name: string;
    readonly parentAgentId: string | null;
    /** The call that spawned it; `null` if code did. */
    readonly callId: string | null;
    /** `running`, or how it ended. */
    readonly status: string;
    /** The last complete text of its model. */
    readonly text: string;
  };
  /** A limit that was nearly reached, is exhausted, or was changed; one part for each limit of an account. */
  readonly budget: {
    readonly state: "warning" | "exhausted" | "changed";
    readonly accountId: string;
    /** Name of the limit; `null` if several changed. */
    readonly limit: string | null;
    /** The event as text. */
    readonly message: string;
  };
  /** A saved version of an artifact. */
  readonly artifact: {
    readonly agentId: string;
    readonly artifactId: string;
    readonly name: string;
    readonly version: number;
    readonly contentType: string;
    /** Bytes. */
    readonly size: number;
  };
  /** Progress of a running tool; only for `onData`, it does not become a part of the message. */
  readonly progress: { readonly callId: string; readonly name: string; readonly update: unknown };
  /** How a limit will be used at the present rate; only for `onData`. */
  readonly forecast: Pick<
    TroupeEventOf<"budget.forecast">,
    "accountId" | "limit" | "used" | "reserved" | "max" | "expected" | "renewsAt" | "metAt" | "message"
  >;
};

type DataChunk = {
  [Name in keyof AiSdkData]: {
    readonly type: `data-${Name}`;
    readonly id?: string;
    readonly data: AiSdkData[Name];
    readonly transient?: true;
  };
}[keyof AiSdkData];

/** Marks a text as the result of a call that ended the turn (`endsTurn`); the page sends it back with its message. */
export interface AnswerMark {
  readonly troupe: { readonly answerOf: string };
}

interface OfPart {
  readonly id: string;
}

interface OfCall {
  readonly toolCallId: string;
}

/** A chunk that adds to the parts of the message. */
export type PartChunk =
  | ({ readonly type: "text-start"; readonly providerMetadata?: AnswerMark } & OfPart)
  | ({ readonly type: "text-end" | "reasoning-start" | "reasoning-end" } & OfPart)
  | ({ readonly type: "text-delta" | "reasoning-delta"; readonly delta: string } & OfPart)
  | { readonly type: "start-step" | "finish-step" | "reset-step" }
  | ({ readonly type: "tool-input-start"; readonly toolName: string; readonly providerExecuted: true } & OfCall)
  | ({ readonly type: "tool-input-delta"; readonly inputTextDelta: string } & OfCall)
  | ({
      readonly type: "tool-input-available";
      readonly toolName: string;
      readonly input: Json;
      /** False for a call that waits for the page: only these reach `onToolCall`. */
      readonly providerExecuted: boolean;
      readonly title?: string;
      readonly toolMetadata?: JsonObject;
    } & OfCall)
  | ({ readonly type: "tool-output-available"; readonly output: Json } & OfCall)
  | ({ readonly type: "tool-output-error"; readonly errorText: string } & OfCall)
  | ({ readonly type: "tool-output-denied" } & OfCall)
  | ({
      readonly type: "tool-approval-request";
      readonly approvalId: string;
      readonly reason: string;
      /** The hash of the arguments that the person sees; an approval for other arguments is refused. */
      readonly signature: string;
    } & OfCall)
  | {
      readonly type: "tool-approval-response";
      readonly approvalId: string;
      readonly approved: boolean;
      readonly reason?: string;
    }
  | { readonly type: "source-url"; readonly sourceId: string; readonly url: string; readonly title?: string }
  | {
      readonly type: "source-document";
      readonly sourceId: string;
      readonly mediaType: string;
      readonly title: string;
    }
  | ({
      readonly type: "steering-message";
      readonly parts: readonly { readonly type: "text"; readonly text: string }[];
    } & OfPart)
  | DataChunk;

export type FinishReason = "stop" | "length" | "content-filter" | "tool-calls" | "interrupted";

export type UiChunk =
  | PartChunk
  | { readonly type: "start"; readonly messageId: string; readonly messageMetadata: AiSdkMetadata }
  | { readonly type: "finish"; readonly finishReason: FinishReason; readonly messageMetadata: AiSdkMetadata }
  | { readonly type: "message-metadata"; readonly messageMetadata: AiSdkMetadata }
  | { readonly type: "abort"; readonly reason: string }
  | { readonly type: "error"; readonly errorText: string };
