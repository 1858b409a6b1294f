import { type Message, textOf } from "../../state/index.ts";
import { formatNumberOf } from "../view/format.ts";
import { oneLine, truncate } from "../view/text-width.ts";

const messagesShown = 6;
const longestText = 160;

/** A conversation in short: its last messages, one line each; what tools and hooks said is left out. */
export function recentLines(messages: readonly Message[]): string[] {
  const said = messages.flatMap((message) => {
    const text = oneLine(textOf(message.content));
    const who = message.origin === "user" ? "you" : message.role === "assistant" ? "agent" : undefined;
    return who === undefined || text === "" ? [] : [{ who, text }];
  });
  const shown = said.slice(-messagesShown);
  const left = said.length - shown.length;
  return [
    ...(left > 0 ? [`… ${formatNumberOf(left, "earlier message")}`] : []),
    ...shown.map(({ who, text }) => `${who}: ${truncate(text, longestText)}`),
  ];
}
