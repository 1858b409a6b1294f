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
export { type Assembly, assembleMessages, compileMessages, withPatches } from "./compile.ts";
export { type DropOldestOptions, dropOldest } from "./drop-oldest.ts";
export type { CompileInput, HistoryCompiler } from "./history-compiler.ts";
export { isLegal, legalMessages } from "./legal-messages.ts";
export { COMPACTION_ORIGIN } from "./open-turn.ts";
export { type ExpandedWindow, expandedWindow, type ReactHistoryOptions, reactHistory } from "./react-history.ts";
export { type SummarizeOptions, summarize } from "./summarize.ts";
export { fullHistory, withoutTraces } from "./whole-histories.ts";
export { windowHistory } from "./window-history.ts";

export { isOfTurn, openTurnStart } from "./open-turn.ts";
