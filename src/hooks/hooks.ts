import type { ModelResponse } from "../state/index.ts";
import type { GenerateInput, RunAgent } from "../tools/index.ts";
import type { AfterToolsDraft, BeforeLlmDraft } from "./draft.ts";

/** What a hook knows of the run it takes part in. */
export interface HookContext {
  readonly agent: RunAgent;
  readonly turnId: string;
  readonly step: number;
  /** The user's prompt of this turn, as text. */
  readonly prompt: string;
  readonly actorId: string | null;
  /** Aborted when the turn is stopped. */
  readonly signal: AbortSignal;
  /** A model call on the agent's budget; journalled, so a rerun with the same prompt gets the first answer. */
  generate(request: GenerateInput): Promise<ModelResponse>;
}

/** Called before each model call of a step, once per step; retries of the call do not call it again. */
export type BeforeLlmHook = (draft: BeforeLlmDraft, run: HookContext) => void | Promise<void>;
/** Called once per round, when every tool call of it has its result. */
export type AfterToolsHook = (draft: AfterToolsDraft, run: HookContext) => void | Promise<void>;

/** User code at fixed places of a turn. A hook that throws fails the turn with that error (row H4). */
export interface Hooks {
  readonly beforeLlm?: BeforeLlmHook | readonly BeforeLlmHook[] | undefined;
  readonly afterTools?: AfterToolsHook | readonly AfterToolsHook[] | undefined;
}

/** A named bundle of hooks (row H1). */
export interface Plugin {
  readonly name: string;
  readonly hooks: Hooks;
}

export interface RegisteredHook<Hook> {
  readonly plugin: string;
  readonly hook: Hook;
}

export interface HookRegistry {
  readonly beforeLlm: readonly RegisteredHook<BeforeLlmHook>[];
  readonly afterTools: readonly RegisteredHook<AfterToolsHook>[];
}

/** All hooks in the order of registration: the agent's own first, then each plugin's. */
export function registerHooks(own: Hooks | undefined, plugins: readonly Plugin[]): HookRegistry {
  const bundles = [...(own ? [{ name: "agent", hooks: own }] : []), ...plugins];
  return {
    beforeLlm: bundles.flatMap(({ name, hooks }) => listOf(hooks.beforeLlm).map((hook) => ({ plugin: name, hook }))),
    afterTools: bundles.flatMap(({ name, hooks }) => listOf(hooks.afterTools).map((hook) => ({ plugin: name, hook }))),
  };
}

function listOf<Hook>(hooks: Hook | readonly Hook[] | undefined): readonly Hook[] {
  if (hooks === undefined) return [];
  return Array.isArray(hooks) ? (hooks as readonly Hook[]) : [hooks as Hook];
}
