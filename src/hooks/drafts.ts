import type {
  AssistantMessage,
  CallSettings,
  CallOutcome,
  Content,
  FinishReason,
  HookPatch,
  Json,
  Message,
  StopReason,
  StoredError,
  SystemMessage,
  TurnOutcome,
  Usage,
  UserMessage,
} from "../state/index.ts";

/** A message that a hook adds. It enters history with origin `hook:<plugin>`. */
export interface AddedMessage {
  /** The message's role for the model. */
  readonly role: (UserMessage | SystemMessage | AssistantMessage)["role"];
  /** A text, or a list of text and image parts. */
  readonly content: Content;
}

/** A message of a user with other content, which takes its place in every prompt. */
export interface ReplacingMessage extends AddedMessage {
  /** Id of the message. */
  readonly replaces?: string;
}

/** Hooks that may replace what a user wrote. */
export interface Rewritable {
  /**
   * Replaces the content of a message of the user or of a report of a subagent, in this and all later prompts, and for hooks and tools. The
   * store keeps the original too.
   */
  readonly rewrite: (messageId: string, content: Content) => void;
}

/** Hooks that may stop the turn. */
export interface Stoppable {
  /** Stops the turn with stop reason `stop_requested` at the end of this step. The first reason counts. */
  readonly stop: (reason: string) => void;
}

/** Hooks that may add a message to the conversation. */
export interface Addable {
  /**
   * Adds a message to the conversation. Between an answer with tool calls and their results it is held back until every call has
   * its result.
   */
  readonly add: (message: AddedMessage) => void;
}

/** Hooks that run before the calls of a round are validated. */
export interface CallsChangeable {
  /** Replaces the model's arguments; the new ones are validated in the same way. */
  readonly changeArguments: (callId: string, args: object) => void;
  /** Denies the call; the model receives the reason. */
  readonly deny: (callId: string, reason: string) => void;
}

/** Hooks that may request another step when the turn would end or stop. */
export interface Continuable {
  /** Requests another step instead of ending the turn. */
  readonly continue: () => void;
}

export type AfterUserInputDraft = HookViews["afterUserInput"] & Addable & Rewritable & Stoppable;

export interface BeforeLlmDraft extends Addable, Rewritable, Stoppable {
  /** The messages of the next model call, including those added by earlier hooks. */
  readonly messages: HookViews["beforeLlm"]["messages"];
  /** Changes a message for the next model call only; history keeps the original. */
  readonly edit: (messageId: string, content: Content) => void;
  /** Leaves a message out of the next model call only; history keeps it. */
  readonly remove: (messageId: string) => void;
  /** The settings of the next model call, as the definition, the turn and earlier hooks have set them. */
  readonly settings: HookViews["beforeLlm"]["settings"];
  /** Names of the tools that the next model call offers. */
  readonly tools: HookViews["beforeLlm"]["tools"];
  /**
   * Changes settings of the next model call only, attempts that repeat it included; what is not given stays as it is. The options of a
   * provider are merged field by field. Later hooks see the change and may change it again.
   */
  readonly set: (settings: CallSettings) => void;
}

export type AfterLlmDraft = HookViews["afterLlm"] & Addable & CallsChangeable & Stoppable & Continuable;

export type BeforeToolsDraft = HookViews["beforeTools"] & Addable & CallsChangeable & Stoppable;

export interface BeforeEachToolDraft extends Stoppable {
  /** The call that is about to run. */
  readonly call: CheckedCall;
  /** Replaces the validated arguments; the new ones are validated again. */
  readonly changeArguments: (args: object) => void;
  /** Denies the call; the model receives the reason. */
  readonly deny: (reason: string) => void;
}

export interface AfterEachToolDraft extends Stoppable {
  /** The call that has ended. */
  readonly call: CallResult["call"];
  /** How it ended. */
  readonly result: CallResult;
}

export type OnErrorDraft = AfterEachToolDraft;

export type AfterToolsDraft = HookViews["afterTools"] & Addable & Stoppable & Continuable;

/** The turn has ended: messages added now belong to the next turn. */
export type OnCompleteDraft = HookViews["onComplete"] & Addable;

/** The draft of each hook: its view, and the changes that are allowed at this point. */
export interface HookDrafts {
  /** The turn has its input; no step has started. */
  readonly afterUserInput: AfterUserInputDraft;
  /** The messages of a model call are chosen; the call has not been made yet. */
  readonly beforeLlm: BeforeLlmDraft;
  /** The model has answered. */
  readonly afterLlm: AfterLlmDraft;
  /** The model has requested tools; none of them has run yet. */
  readonly beforeTools: BeforeToolsDraft;
  /** One call has validated arguments and is about to run. */
  readonly beforeEachTool: BeforeEachToolDraft;
  /** One call has ended, with or without an error. */
  readonly afterEachTool: AfterEachToolDraft;
  /** One call has ended with an error. */
  readonly onError: OnErrorDraft;
  /** All calls of a step have ended. */
  readonly afterTools: AfterToolsDraft;
  /** The turn is about to end. */
  readonly onComplete: OnCompleteDraft;
}

/** The outcome of a draft: added messages without ids, and the rest of the patch. */
export interface DraftOutcome {
  readonly added: readonly ReplacingMessage[];
  readonly patch: Omit<HookPatch, "addedMessageIds" | "held">;
}

/** The outcome of a `beforeEachTool` draft, for the call's gate. */
export interface CallDraftOutcome {
  readonly arguments?: Json;
  readonly denied?: string;
  readonly stop: HookPatch["stop"];
}

export interface DraftOutcomes {
  readonly afterUserInput: DraftOutcome;
  readonly beforeLlm: DraftOutcome;
  readonly afterLlm: DraftOutcome;
  readonly beforeTools: DraftOutcome;
  readonly beforeEachTool: CallDraftOutcome;
  readonly afterEachTool: DraftOutcome;
  readonly onError: DraftOutcome;
  readonly afterTools: DraftOutcome;
  readonly onComplete: DraftOutcome;
}

/** A tool call as requested by the model, or with the arguments set by an earlier hook. */
export interface HookCall {
  /** Id of the call within its agent. */
  readonly callId: string;
  /** Name of the tool as the model wrote it. */
  readonly name: string;
  /** JSON text; if it comes from the model, it may be malformed. */
  readonly arguments: string;
}

/** A tool call with validated arguments, before it runs. */
export interface CheckedCall {
  /** Id of the call within its agent. */
  readonly callId: string;
  /** Name of the tool. */
  readonly name: string;
  /** Arguments that match the tool's schema, as JSON. */
  readonly arguments: Json;
}

/** A tool call with its result. */
export interface CallResult {
  /** The call with the arguments that it ran with. */
  readonly call: HookCall;
  /** The outcome, for instance `success`, `error` or `outcome_unknown`. */
  readonly outcome: CallOutcome;
  /** The result's text, as the model sees it. */
  readonly text: string;
  /** Milliseconds since it started; 0 if it never started. */
  readonly durationMs: number;
  /** The error; `null` if the call ended without one. */
  readonly error: StoredError | null;
}

/** The model's answer. */
export interface HookResponse {
  /** The text of the answer; empty if it consists only of tool calls. */
  readonly text: string;
  /** Why the model stopped generating. */
  readonly finishReason: FinishReason;
  /** Tokens of the call. */
  readonly usage: Usage;
}

/** The upcoming end of a turn. */
export interface TurnEnd {
  /** Whether the turn completes, is stopped or fails. */
  readonly outcome: TurnOutcome;
  /** The reason for the end. */
  readonly stopReason: StopReason;
  /** The answer; a partial one if the turn was stopped. */
  readonly text: string;
}

interface MessagesView {
  /** The conversation, including messages added by earlier hooks but not those added by this hook. */
  readonly messages: readonly Message[];
}

/** The view of each hook. */
export interface HookViews {
  /** Before the first step of a turn. */
  readonly afterUserInput: MessagesView & {
    /** The user's prompt as text; empty for a turn without input. */
    readonly input: string;
  };
  /** Before a model call. */
  readonly beforeLlm: MessagesView & {
    readonly settings: CallSettings;
    readonly tools: readonly string[];
  };
  /** After the model has answered. */
  readonly afterLlm: MessagesView & {
    readonly response: HookResponse;
    /** Empty for a final answer. */
    readonly calls: readonly HookCall[];
  };
  /** Before the calls of a step. */
  readonly beforeTools: MessagesView & { readonly calls: readonly HookCall[] };
  /** Before one call. */
  readonly beforeEachTool: { readonly call: CheckedCall };
  /** After one call. */
  readonly afterEachTool: CallResult;
  /** After a call that failed. */
  readonly onError: CallResult;
  /** After all calls of a step. */
  readonly afterTools: MessagesView & {
    /** All calls of the round, in the model's order. */
    readonly results: readonly CallResult[];
  };
  /** Before the end of the turn. */
  readonly onComplete: MessagesView & { readonly end: TurnEnd };
}
