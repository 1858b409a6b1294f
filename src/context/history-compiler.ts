import type { Message } from "../state/index.ts";

/** What a compiler chooses from. */
export interface CompileInput {
  /** Oldest first, since the last compaction or clear. What hooks edited for one call is applied afterwards. */
  readonly history: readonly Message[];
  /** The open turn: what it has added so far is always shown. */
  readonly turnId: string;
  /**
   * Place in `history` of the open turn's first message, where the runtime has kept it; nothing before it is a summary then
   * but the first message. Absent: it is searched for, which takes time in a long history.
   */
  readonly turnStart?: number | undefined;
  /** The window as the turn has it now; null: the compiler's own. */
  readonly contextWindowSize: number | null;
  /** Earlier calls whose results the model asked to see again, in that order. */
  readonly loadedCallIds: readonly string[];
  /** What came before the last compaction, or the whole conversation: results are loaded from there too. */
  readonly earlier: readonly Message[];
}

/** Chooses which messages of the conversation one model call sees. Pure: the same input gives the same messages. */
export interface HistoryCompiler {
  /** With its numbers, so that another name means another choice. */
  readonly name: string;
  /** Messages of the conversation that a turn sees at first; absent: there is no window that the model could widen. */
  readonly contextWindowSize?: number;
  /** By how many messages the model widens the window at a time. */
  readonly expandBy?: number;
  /** Whether the model is given tools on its own context (row R6). */
  readonly internalTools: boolean;
  /** Legal as `legalMessages` makes it, in the order of the history. */
  compile(input: CompileInput): readonly Message[];
}
