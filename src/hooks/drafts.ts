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
  readonly role: (UserMessage | SystemMessage | AssistantMessage)["role"];
  readonly content: Content;
}

/** Hooks that may stop the turn. */
export interface Stoppable {
  /** Stops the turn with stop reason `stop_requested` at the end of this step (row S11). The first reason counts. */
  readonly stop: (reason: string) => void;
}

/** Hooks that may add a message to the conversation (row H2). */
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

/** Hooks that may ask for another step where the turn would end or stop (row S5). */
export interface Continuable {
  readonly continue: () => void;
}

export type AfterUserInputDraft = HookViews["afterUserInput"] & Addable & Stoppable;

export interface BeforeLlmDraft extends Addable, Stoppable {
  readonly messages: HookViews["beforeLlm"]["messages"];
  /** Changes a message for the next model call only; history keeps it as it was. */
  readonly edit: (messageId: string, content: Content) => void;
  /** Leaves a message out of the next model call only; history keeps it. */
  readonly remove: (messageId: string) => void;
}

export type AfterLlmDraft = HookViews["afterLlm"] & Addable & CallsChangeable & Stoppable & Continuable;

export type BeforeToolsDraft = HookViews["beforeTools"] & Addable & CallsChangeable & Stoppable;

export interface BeforeEachToolDraft extends Stoppable {
  readonly call: CheckedCall;
  /** Replaces the checked arguments; the new ones are checked again. */
  readonly changeArguments: (args: object) => void;
  /** Keeps the call from running; the model gets the reason. */
  readonly deny: (reason: string) => void;
}

export interface AfterEachToolDraft extends Stoppable {
  readonly call: CallResult["call"];
  readonly result: CallResult;
}

export type OnErrorDraft = AfterEachToolDraft;

export type AfterToolsDraft = HookViews["afterTools"] & Addable & Stoppable & Continuable;

/** The turn has ended: messages added here are for the next one. */
export type OnCompleteDraft = HookViews["onComplete"] & Addable;

/** The draft of each hook: its view, and the changes that are safe at this point (row H2). */
export interface HookDrafts {
  readonly afterUserInput: AfterUserInputDraft;
  readonly beforeLlm: BeforeLlmDraft;
  readonly afterLlm: AfterLlmDraft;
  readonly beforeTools: BeforeToolsDraft;
  readonly beforeEachTool: BeforeEachToolDraft;
  readonly afterEachTool: AfterEachToolDraft;
  readonly onError: OnErrorDraft;
  readonly afterTools: AfterToolsDraft;
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
  readonly callId: string;
  readonly name: string;
  /** JSON text; the model's own text may be broken. */
  readonly arguments: string;
}

/** A tool call with checked arguments, right before it runs. */
export interface CheckedCall {
  readonly callId: string;
  readonly name: string;
  readonly arguments: Json;
}

/** A tool call with its result. */
export interface CallResult {
  readonly call: HookCall;
  readonly outcome: CallOutcome;
  /** The result's text for the model. */
  readonly text: string;
  /** Milliseconds from its start; 0 when it never started. */
  readonly durationMs: number;
  readonly error: StoredError | null;
}

/** The model's answer. */
export interface HookResponse {
  readonly text: string;
  readonly finishReason: FinishReason;
  readonly usage: Usage;
}

/** The coming end of a turn. */
export interface TurnEnd {
  readonly outcome: TurnOutcome;
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
  readonly afterUserInput: MessagesView & {
    /** The user's prompt, as text; empty for a turn without input. */
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
