import type { HookName, ModelResponse, TraceEntry } from "../state/index.ts";
import type { Auth, GenerateInput, RegisteredTool, RunAgent } from "../tools/index.ts";
import type { HookDrafts } from "./drafts.ts";

/** User code at one place of a turn. What it changes through its draft is committed when it returns. */
export type Hook<Name extends HookName> = (draft: HookDrafts[Name], run: HookContext) => void | Promise<void>;

/** One hook, or several in the order in which they are to run. */
export type OneOrMore<Name extends HookName> = Hook<Name> | readonly Hook<Name>[];

/**
 * User code at fixed places of a turn. A hook that throws fails the turn with that error; in `beforeEachTool` it fails
 * that call alone (row H4).
 */
export interface Hooks {
  /** Once per turn, before anything is done with the input. */
  readonly afterUserInput?: OneOrMore<"afterUserInput"> | undefined;
  /** Once per step, before its model call; retries of the call do not call it again. */
  readonly beforeLlm?: OneOrMore<"beforeLlm"> | undefined;
  /** Once per step, when the answer is there and before anything follows from it. */
  readonly afterLlm?: OneOrMore<"afterLlm"> | undefined;
  /** Once per round of tool calls, before the first of them. */
  readonly beforeTools?: OneOrMore<"beforeTools"> | undefined;
  /** Once per tool call that is neither denied nor invalid so far, before it may run. */
  readonly beforeEachTool?: OneOrMore<"beforeEachTool"> | undefined;
  /** Once per tool call, when it has its result; not when it was interrupted. */
  readonly afterEachTool?: OneOrMore<"afterEachTool"> | undefined;
  /** Once per tool call that failed, before `afterEachTool`. A denied or interrupted call has not failed. */
  readonly onError?: OneOrMore<"onError"> | undefined;
  /** Once per round of tool calls, when all of them have their results. */
  readonly afterTools?: OneOrMore<"afterTools"> | undefined;
  /** Once per turn, last; not when it failed or was aborted. */
  readonly onComplete?: OneOrMore<"onComplete"> | undefined;
}

/** A named bundle of hooks and tools (row H1). */
export interface Plugin {
  /** 1 to 64 letters, digits, `_`, `-` and `.`; not `agent`. It is the origin of what its hooks add. */
  readonly name: string;
  readonly hooks?: Hooks | undefined;
  /** Tools that an agent gets with the plugin: whatever its own `tools` may hold. */
  readonly tools?: readonly RegisteredTool[] | undefined;
}

/** What a hook knows of the run it takes part in. */
export interface HookContext {
  readonly agent: RunAgent;
  readonly turnId: string;
  /** The step it belongs to, from 1. */
  readonly step: number;
  /** The user's prompt of this turn, as text. */
  readonly prompt: string;
  /** Who started the turn; null: nobody was named. */
  readonly actorId: string | null;
  /** Who the turn is for, with credentials where they are there. Not for storing: they are in no journal. */
  readonly auth: Auth | undefined;
  /** How full the model's context window was after the last answer, 0 to 100; null when that is not known. */
  readonly contextPercent: number | null;
  /** What happened in this turn so far (row H5). */
  readonly trace: readonly TraceEntry[];
  /** Aborted when the turn is stopped. */
  readonly signal: AbortSignal;
  /** A model call on the agent's budget; journalled, so a rerun with the same prompt gets the first answer. */
  readonly generate: (request: GenerateInput) => Promise<ModelResponse>;
  /**
   * Shows a `warning` event to whoever watches: `code` is for programs, `message` for people. One code is shown once per
   * turn, whatever its message; false when it had been shown already.
   */
  readonly emitWarning: (code: string, message: string) => boolean;
}
