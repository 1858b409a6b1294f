import type {
  CallOutcome,
  FinishReason,
  Json,
  Message,
  StopReason,
  StoredError,
  TurnOutcome,
  Usage,
} from "../state/index.ts";

/** A tool call as the model asked for it, with the arguments that an earlier hook put in place of its own. */
export interface HookCall {
  readonly callId: string;
  readonly name: string;
  /** JSON text; when it is the model's own it may be broken. */
  readonly arguments: string;
}

/** A tool call whose arguments were checked, right before it runs. */
export interface CheckedCall {
  readonly callId: string;
  readonly name: string;
  readonly arguments: Json;
}

/** A tool call with its result. */
export interface CallResult {
  readonly call: HookCall;
  readonly outcome: CallOutcome;
  /** What the model is told. */
  readonly text: string;
  /** Milliseconds from its start; 0 when it never started. */
  readonly durationMs: number;
  readonly error: StoredError | null;
}

/** What the model answered. */
export interface HookResponse {
  readonly text: string;
  readonly finishReason: FinishReason;
  readonly usage: Usage;
}

/** How a turn is about to end. */
export interface TurnEnd {
  readonly outcome: TurnOutcome;
  readonly stopReason: StopReason;
  /** The answer, or the partial one. */
  readonly text: string;
}

interface MessagesView {
  /** The conversation as the hook finds it: what hooks before it added is in, what it adds itself is not. */
  readonly messages: readonly Message[];
}

/** What each hook gets to see. */
export interface HookViews {
  readonly afterUserInput: MessagesView & {
    /** The user's prompt, as text; empty for a turn that has no input of its own. */
    readonly input: string;
  };
  readonly beforeLlm: MessagesView;
  readonly afterLlm: MessagesView & {
    readonly response: HookResponse;
    /** Empty when the answer is a final one. */
    readonly calls: readonly HookCall[];
  };
  readonly beforeTools: MessagesView & { readonly calls: readonly HookCall[] };
  readonly beforeEachTool: { readonly call: CheckedCall };
  readonly afterEachTool: CallResult;
  readonly onError: CallResult;
  readonly afterTools: MessagesView & {
    /** Every call of the round, in the order in which the model asked for them. */
    readonly results: readonly CallResult[];
  };
  readonly onComplete: MessagesView & { readonly end: TurnEnd };
}
