import type {
  AssistantMessage,
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
  /** The author of the message, as the model sees it. */
  readonly role: (UserMessage | SystemMessage | AssistantMessage)["role"];
  /** Its text, or parts of text and images. */
  readonly content: Content;
}

/** Hooks that may stop the turn. */
export interface Stoppable {
  /** Stops the turn with stop reason `stop_requested` at the end of this step. The first reason counts. */
  readonly stop: (reason: string) => void;
}

/** Hooks that may add a message to the conversation. */
export interface Addable {
  /**
   * Adds a message to the conversation. Between an answer with tool calls and their results it is held back, and enters
   * when every call has its result.
   */
  readonly add: (message: AddedMessage) => void;
}

/** Hooks that run before the calls of a round are checked. */
export interface CallsChangeable {
  /** Replaces the model's arguments; the new ones are checked as those would be. */
  readonly changeArguments: (callId: string, args: object) => void;
  /** Keeps a call from running; the model gets the reason. */
  readonly deny: (callId: string, reason: string) => void;
}

/** Hooks that may ask for another step where the turn would end or stop. */
export interface Continuable {
  /** Asks for another step in place of the end. */
  readonly continue: () => void;
}

export type AfterUserInputDraft = HookViews["afterUserInput"] & Addable & Stoppable;

export interface BeforeLlmDraft extends Addable, Stoppable {
  /** The messages of the coming model call, with those of earlier hooks. */
  readonly messages: HookViews["beforeLlm"]["messages"];
  /** Changes a message for the next model call only; history keeps it as it was. */
  readonly edit: (messageId: string, content: Content) => void;
  /** Leaves a message out of the next model call only; history keeps it. */
  readonly remove: (messageId: string) => void;
}

export type AfterLlmDraft = HookViews["afterLlm"] & Addable & CallsChangeable & Stoppable & Continuable;

export type BeforeToolsDraft = HookViews["beforeTools"] & Addable & CallsChangeable & Stoppable;

export interface BeforeEachToolDraft extends Stoppable {
  /** The call that is about to run. */
  readonly call: CheckedCall;
  /** Replaces the checked arguments; the new ones are checked again. */
  readonly changeArguments: (args: object) => void;
  /** Keeps the call from running; the model gets the reason. */
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

/** The turn has ended: messages added here are for the next one. */
export type OnCompleteDraft = HookViews["onComplete"] & Addable;

/** The draft of each hook: its view, and the changes that are safe at this point. */
export interface HookDrafts {
  /** The turn has its input, and no step has begun. */
  readonly afterUserInput: AfterUserInputDraft;
  /** The messages of a model call are chosen, and the call is not made yet. */
  readonly beforeLlm: BeforeLlmDraft;
  /** The model has answered. */
  readonly afterLlm: AfterLlmDraft;
  /** The model has asked for tools, and none of them runs yet. */
  readonly beforeTools: BeforeToolsDraft;
  /** One call has valid arguments and is about to run. */
  readonly beforeEachTool: BeforeEachToolDraft;
  /** One call has ended, well or not. */
  readonly afterEachTool: AfterEachToolDraft;
  /** One call has ended with an error. */
  readonly onError: OnErrorDraft;
  /** All calls of a step have ended. */
  readonly afterTools: AfterToolsDraft;
  /** The turn is about to end. */
  readonly onComplete: OnCompleteDraft;
}

/** The outcome of a draft: added messages, without ids, and the rest of the patch. */
export interface DraftOutcome {
  readonly added: readonly AddedMessage[];
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

/** A tool call as the model asked for it, or with the arguments of an earlier hook. */
export interface HookCall {
  /** Id of the call within its agent. */
  readonly callId: string;
  /** Name of the tool, as the model wrote it. */
  readonly name: string;
  /** JSON text; the model's own text may be broken. */
  readonly arguments: string;
}

/** A tool call with checked arguments, right before it runs. */
export interface CheckedCall {
  /** Id of the call within its agent. */
  readonly callId: string;
  /** Name of the tool. */
  readonly name: string;
  /** Arguments that fit the tool's schema, as JSON. */
  readonly arguments: Json;
}

/** A tool call with its result. */
export interface CallResult {
  /** The call, with the arguments that it ran with. */
  readonly call: HookCall;
  /** How it ended, for instance `success`, `error` or `outcome_unknown`. */
  readonly outcome: CallOutcome;
  /** The result's text for the model. */
  readonly text: string;
  /** Milliseconds from its start; 0 when it never started. */
  readonly durationMs: number;
  /** The error; `null` if the call ended without one. */
  readonly error: StoredError | null;
}

/** The model's answer. */
export interface HookResponse {
  /** The text of the answer; empty when it only calls tools. */
  readonly text: string;
  /** Why the model ended its answer. */
  readonly finishReason: FinishReason;
  /** Tokens of the call. */
  readonly usage: Usage;
}

/** The coming end of a turn. */
export interface TurnEnd {
  /** Whether the turn completes, is stopped or fails. */
  readonly outcome: TurnOutcome;
  /** The reason of the end. */
  readonly stopReason: StopReason;
  /** The answer, or the partial one. */
  readonly text: string;
}

interface MessagesView {
  /** The conversation with the messages of earlier hooks, without the hook's own. */
  readonly messages: readonly Message[];
}

/** The view of each hook. */
export interface HookViews {
  /** Before the first step of a turn. */
  readonly afterUserInput: MessagesView & {
    /** The user's prompt, as text; empty for a turn without input. */
    readonly input: string;
  };
  /** Before a model call. */
  readonly beforeLlm: MessagesView;
  /** After the model has answered. */
  readonly afterLlm: MessagesView & {
    readonly response: HookResponse;
    /** Empty when the answer is a final one. */
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
    /** Every call of the round, in the order in which the model asked for them. */
    readonly results: readonly CallResult[];
  };
  /** Before the end of the turn. */
  readonly onComplete: MessagesView & { readonly end: TurnEnd };
}
