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

/** Every hook may stop the turn. */
export interface Stoppable {
  /** Stops the turn with stop reason `stop_requested` at the end of this step (row S11). The first reason counts. */
  readonly stop: (reason: string) => void;
}

/** Hooks at places where a message may enter the conversation (row H2). */
export interface Addable {
  /**
   * Adds a message to the conversation. Between an answer with tool calls and their results it is held back, and enters
   * when every call has its result.
   */
  readonly add: (message: AddedMessage) => void;
}

/** Hooks that come before the calls of a round are checked. */
export interface CallsChangeable {
  /** Puts other arguments in the place of the model's; they are checked as those would be. */
  readonly changeArguments: (callId: string, args: object) => void;
  /** Keeps a call from running; the model is told the reason. */
  readonly deny: (callId: string, reason: string) => void;
}

/** Hooks that can ask for another step where the turn would end or stop (row S5). */
export interface Continuable {
  readonly continue: () => void;
}

export type AfterUserInputDraft = HookViews["afterUserInput"] & Addable & Stoppable;

export interface BeforeLlmDraft extends Addable, Stoppable {
  readonly messages: HookViews["beforeLlm"]["messages"];
  /** Changes what a message says, for the one model call that follows; history keeps it as it was. */
  readonly edit: (messageId: string, content: Content) => void;
  /** Leaves a message out of the one model call that follows; history keeps it. */
  readonly remove: (messageId: string) => void;
}

export type AfterLlmDraft = HookViews["afterLlm"] & Addable & CallsChangeable & Stoppable & Continuable;

export type BeforeToolsDraft = HookViews["beforeTools"] & Addable & CallsChangeable & Stoppable;

export interface BeforeEachToolDraft extends Stoppable {
  readonly call: CheckedCall;
  /** Puts other arguments in the place of those that were checked; they are checked again. */
  readonly changeArguments: (args: object) => void;
  /** Keeps the call from running; the model is told the reason. */
  readonly deny: (reason: string) => void;
}

export interface AfterEachToolDraft extends Stoppable {
  readonly call: CallResult["call"];
  readonly result: CallResult;
}

export type OnErrorDraft = AfterEachToolDraft;

export type AfterToolsDraft = HookViews["afterTools"] & Addable & Stoppable & Continuable;

/** The turn has come to its end: what is added here is there for the next one. */
export type OnCompleteDraft = HookViews["onComplete"] & Addable;

/** The draft of each hook: what it sees, and what it may do. What is not safe at its place is not there (row H2). */
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

/** What came of a draft: the messages it added, without ids, and the rest of the patch. */
export interface DraftOutcome {
  readonly added: readonly AddedMessage[];
  readonly patch: Omit<HookPatch, "addedMessageIds" | "held">;
}

/** What came of a `beforeEachTool` draft: its part of the call's gate. */
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
