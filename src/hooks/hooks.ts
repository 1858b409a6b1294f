import type { HookName, TraceEntry } from "../state/index.ts";
import type { Auth, DataSubject, Forget, RegisteredTool } from "../tools/index.ts";
import type { HookDrafts } from "./drafts.ts";
import type { GuardContext, PluginGuards } from "./guards.ts";

/** User code that runs at one point of a turn. Its changes to the draft are committed when it returns. */
export type Hook<Name extends HookName> = (draft: HookDrafts[Name], run: HookContext) => void | Promise<void>;

/** One hook, or several in execution order. */
export type OneOrMore<Name extends HookName> = Hook<Name> | readonly Hook<Name>[];

/**
 * User code that runs at fixed points of a turn. An error thrown by a hook fails the turn; in `beforeEachTool` it fails only that
 * call.
 */
export interface Hooks {
  /** Once per turn, before the input is used. */
  readonly afterUserInput?: OneOrMore<"afterUserInput"> | undefined;
  /** Once per step, before its model call; retries of the call do not call it again. */
  readonly beforeLlm?: OneOrMore<"beforeLlm"> | undefined;
  /** Once per step, after the answer and before anything is done with it. */
  readonly afterLlm?: OneOrMore<"afterLlm"> | undefined;
  /** Once per round of tool calls, before the first call. */
  readonly beforeTools?: OneOrMore<"beforeTools"> | undefined;
  /** Once per tool call that has not been denied or found invalid, before it may run. */
  readonly beforeEachTool?: OneOrMore<"beforeEachTool"> | undefined;
  /** Once per tool call, when it has its result; not if the call was interrupted. */
  readonly afterEachTool?: OneOrMore<"afterEachTool"> | undefined;
  /** Once per failed tool call, before `afterEachTool`. Denied and interrupted calls do not count as failed. */
  readonly onError?: OneOrMore<"onError"> | undefined;
  /** Once per round of tool calls, when all of them have their results. */
  readonly afterTools?: OneOrMore<"afterTools"> | undefined;
  /** Once per turn, at its end; not if the turn failed or was aborted. */
  readonly onComplete?: OneOrMore<"onComplete"> | undefined;
}

/** A named bundle of hooks, tools and instructions. */
export interface Plugin {
  /** 1 to 64 letters, digits, `_`, `-` and `.`; not `agent`. It is the origin of messages that its hooks add. */
  readonly name: string;
  /** User code that runs at fixed points of a turn, after the agent's own hooks. Default: none. */
  readonly hooks?: Hooks | undefined;
  /** Text that follows the agent's own instructions in the system prompt. It is part of the definition's hash. Default: none. */
  readonly instructions?: string | undefined;
  /** Checks of inputs, calls, results and answers, which hold where hooks cannot change anything. Default: none. */
  readonly guards?: PluginGuards | undefined;
  /** Tools that the plugin adds to the agent, of any kind that the agent's own `tools` may contain. */
  readonly tools?: readonly RegisteredTool[] | undefined;
  /**
   * Removes what the plugin keeps of an agent or owner in a store of its own. Called by `runtime.delete()` and the retention for each
   * agent of a tree, and by `runtime.deleteOwner()` for the owner too, until it succeeds: it may find nothing left. It has a minute.
   * Default: the plugin keeps nothing.
   */
  readonly forget?: ((subject: DataSubject) => void | Promise<void>) | undefined;
}

/** How a plugin forgets. */
export interface RegisteredForget {
  readonly plugin: string;
  /** The plugin as given: agents that share it share its data. */
  readonly source: object;
  readonly forget: Forget;
}

/** The run that a hook belongs to. */
export interface HookContext extends GuardContext {
  /** The actor with credentials, if the runtime has them. Do not store them: the journal never contains them. */
  readonly auth: Auth | undefined;
  /** How full the model's context window was after the last answer, from 0 to 100; `null` if unknown. */
  readonly contextPercent: number | null;
  /** The turn so far. */
  readonly trace: readonly TraceEntry[];
  /**
   * Emits a `warning` event: `code` is for programs, `message` for people. Each code is emitted once per turn, even with another
   * message; returns `false` if the turn already has that code.
   */
  readonly emitWarning: (code: string, message: string) => boolean;
}
