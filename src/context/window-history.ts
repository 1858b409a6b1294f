import { wholeNumberRule } from "../base/index.ts";
import type { Message } from "../state/index.ts";
import type { CompileInput, HistoryCompiler } from "./history-compiler.ts";
import { isLegal, legalMessages } from "./legal-messages.ts";
import { isSummary, openTurnStart } from "./open-turn.ts";

/**
 * The newest `size` messages, results included; fewer where a call would be parted from its results, more where the open
 * turn alone has more: its own messages are always shown. So is the summary of a compaction, which is not counted.
 * Throws `InvalidInputError` for a size that is no whole number of at least 1.
 */
export function windowHistory(size: number): HistoryCompiler {
  wholeNumberRule(1)(size, "windowHistory(): its size");
  return Object.freeze({
    name: `windowHistory(${size})`,
    internalTools: false,
    compile: (input: CompileInput) => newest(size, input),
  });
}

function newest(size: number, { history, turnId, turnStart }: CompileInput): readonly Message[] {
  const from = turnStart === undefined ? 0 : tailStart(size, history, turnStart);
  if (from > 1) {
    const tail = history.slice(from);
    const [first] = history;
    if (isLegal(tail) === undefined) {
      return newestOf(size, first !== undefined && isSummary(first) ? [first, ...tail] : tail, turnId);
    }
  }
  return newestOf(size, legalMessages(history), turnId);
}

/**
 * Where the open turn and the newest `size` messages are surely behind, and no round is parted. An end of the history that is
 * legal by itself is the end of the legal history too: each result in it answers a call in it.
 */
function tailStart(size: number, history: readonly Message[], turnStart: number): number {
  let from = Math.min(turnStart, Math.max(0, history.length - size));
  while (from > 0 && history[from]?.role === "tool") from -= 1;
  return from;
}

function newestOf(size: number, legal: readonly Message[], turnId: string): readonly Message[] {
  const body = legal.some(isSummary) ? legal.filter((message) => !isSummary(message)) : legal;
  const open = openTurnStart(body, turnId);
  let from = Math.max(0, body.length - size);
  // Results stand right behind their call, so only a result can be at a place that parts the two.
  while (from < open && body[from]?.role === "tool") from += 1;
  from = Math.min(from, open);
  if (from === 0) return legal;
  return legalMessages([...legal.filter(isSummary), ...body.slice(from)]);
}
