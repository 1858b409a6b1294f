import type { Message } from "../state/index.ts";
import { atLeastOne } from "./at-least-one.ts";
import type { CompileInput, HistoryCompiler } from "./history-compiler.ts";
import { legalMessages } from "./legal-messages.ts";
import { isSummary, openTurnStart } from "./open-turn.ts";

/**
 * The newest `size` messages, results included; fewer where a call would be parted from its results, more where the open
 * turn alone has more: its own messages are always shown. So is the summary of a compaction, which is not counted.
 * Throws `InvalidInputError` for a size that is no whole number of at least 1.
 */
export function windowHistory(size: number): HistoryCompiler {
  atLeastOne("size of windowHistory()", size);
  return Object.freeze({
    name: `windowHistory(${size})`,
    internalTools: false,
    compile: (input: CompileInput) => newest(size, input),
  });
}

function newest(size: number, { history, turnId }: CompileInput): readonly Message[] {
  const legal = legalMessages(history);
  const body = legal.some(isSummary) ? legal.filter((message) => !isSummary(message)) : legal;
  const open = openTurnStart(body, turnId);
  let from = Math.max(0, body.length - size);
  // Results stand right behind their call, so only a result can be at a place that parts the two.
  while (from < open && body[from]?.role === "tool") from += 1;
  from = Math.min(from, open);
  if (from === 0) return legal;
  return legalMessages([...legal.filter(isSummary), ...body.slice(from)]);
}
