export { createDraft, type OpenDraft } from "./create-draft.ts";
export type * from "./drafts.ts";
export {
  blockedText,
  type CheckedVerdict,
  type GuardContext,
  type GuardedResult,
  type GuardVerdict,
  type PluginGuards,
  type RegisteredGuards,
  registerGuards,
  verdictOf,
} from "./guards.ts";
export type * from "./hooks.ts";
export * from "./plugins/index.ts";
export {
  type HookRegistry,
  hookCountsOf,
  pluginsOf,
  type RegisteredHook,
  registerForgets,
  registerHooks,
} from "./registry.ts";
