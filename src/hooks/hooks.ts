import type { HookName, ModelResponse, TraceEntry } from "../state/index.ts";
import type { Auth, GenerateInput, RegisteredTool, RunAgent } from "../tools/index.ts";
import type { HookDrafts } from "./drafts.ts";

/** User code at one place of a turn. Its changes to the draft are committed when it returns. */
export type Hook<Name extends HookName> = (draft: HookDrafts[Name], run: HookContext) => void | Promise<void>;

/** One hook, or several in the order in which they are to run. */
export type OneOrMore<Name extends HookName> = Hook<Name> | readonly Hook<Name>[];

/**
 * User code at fixed places of a turn. A hook that throws fails the turn with that error; in `beforeEachTool` it fails
 * that call alone.
 */
export interface Hooks {
  /** Once per turn, before the input is used. */
  readonly afterUserInput?: OneOrMore<"afterUserInput"> | undefined;
  /** Once per step, before its model call; retries of the call do not call it again. */
  readonly beforeLlm?: OneOrMore<"beforeLlm"> | undefined;
  /** Once per step, after the answer and before anything follows from it. */
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

/** A named bundle of hooks and tools. */
export interface Plugin {
  /** 1 to 64 letters, digits, `_`, `-` and `.`; not `agent`. It is the origin of what its hooks add. */
  readonly name: string;
  /** Code that runs at points of a turn, after the agent's own hooks. Default: none. */
  readonly hooks?: Hooks | undefined;
  /** Tools that an agent gets with the plugin, of any kind that its own `tools` may hold. */
  readonly tools?: readonly RegisteredTool[] | undefined;
}

/** The run that a hook is part of. */
export interface HookContext {
  /** The agent whose turn it is. */
  readonly agent: RunAgent;
  /** The turn. */
  readonly turnId: string;
  /** The step it belongs to, from 1. */
  readonly step: number;
  /** The user's prompt of this turn, as text. */
  readonly prompt: string;
  /** The actor who started the turn; `null` if none was named. */
  readonly actorId: string | null;
  /** The actor with credentials, where the runtime has them. Do not store them: no journal has them. */
  readonly auth: Auth | undefined;
  /** How full the model's context window was after the last answer, 0 to 100; null when that is not known. */
  readonly contextPercent: number | null;
  /** The turn so far. */
  readonly trace: readonly TraceEntry[];
  /** Aborted when the turn is stopped. */
  readonly signal: AbortSignal;
  /** A model call on the agent's budget; journalled, so a rerun with the same prompt gets the first answer. */
  readonly generate: (request: GenerateInput) => Promise<ModelResponse>;
  /**
   * Emits a `warning` event: `code` is for programs, `message` for people. Each code is emitted once per turn, even with
   * another message; returns `false` if the turn has had it.
   */
  readonly emitWarning: (code: string, message: string) => boolean;
}
