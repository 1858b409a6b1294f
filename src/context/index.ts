export {
  type CompactedView,
  type Compaction,
  type CompactionDue,
  type CompactionInput,
  type CompactionStrategy,
  compactionDue,
  takeCompaction,
  viewOf,
} from "./compaction.ts";
export {
  type Assembly,
  assembleMessages,
  withPatches,
  type CompileInput,
  type HistoryCompiler,
  type ExpandedWindow,
  expandedWindow,
  type ReactHistoryOptions,
  reactHistory,
  fullHistory,
  isOwnCompiler,
  withoutTraces,
  type WindowHistoryOptions,
  windowHistory,
  type ElideResultsOptions,
  elideResults,
  historyNamed,
} from "./histories.ts";
export {
  asLastCall,
  LAST_CALL_NOTE,
  patchesIn,
  type PromptSource,
  promptHashOf,
  promptMessages,
  type Writer,
} from "./prompt.ts";
export {
  definitionHashesOf,
  definitionIn,
  type PromptCheck,
  type PromptGap,
  type SentCall,
  type SentPrompt,
  SentPrompts,
  type StoredConversation,
} from "./sent-prompts.ts";
export { promptChange, type PromptChange } from "./prompt-change.ts";
export { type DropOldestOptions, dropOldest, type SummarizeOptions, summarize } from "./strategies.ts";
export { isLegal, legalMessages, COMPACTION_ORIGIN, isOfTurn, openTurnStart } from "./turns-and-rounds.ts";
