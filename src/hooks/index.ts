export {
  type AddedMessage,
  type AfterToolsDraft,
  type BeforeLlmDraft,
  createDraft,
  type DraftOutcome,
  type MessageDraft,
} from "./draft.ts";
export {
  type AfterToolsHook,
  type BeforeLlmHook,
  type HookContext,
  type HookRegistry,
  type Hooks,
  type Plugin,
  type RegisteredHook,
  registerHooks,
} from "./hooks.ts";
