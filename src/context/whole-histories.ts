import type { CompileInput, HistoryCompiler } from "./history-compiler.ts";
import { legalMessages } from "./legal-messages.ts";
import { isOfTurn } from "./open-turn.ts";

/** The whole conversation. The default. */
export function fullHistory(): HistoryCompiler {
  return Object.freeze({
    name: "fullHistory",
    internalTools: false,
    compile: ({ history }: CompileInput) => legalMessages(history),
  });
}

/**
 * The conversation without the traces of earlier turns (`is_trace`, row S4): of those only what was asked and what was
 * answered in the end. Of the open turn everything stays.
 */
export function withoutTraces(): HistoryCompiler {
  return Object.freeze({
    name: "withoutTraces",
    internalTools: false,
    compile: ({ history, turnId }: CompileInput) =>
      legalMessages(history.filter((message) => message.metadata?.is_trace !== true || isOfTurn(message, turnId))),
  });
}
