import type { Content, Message } from "../state/index.ts";

/** Characters that one piece of a transcript has at most. */
const mostOf = { said: 8_000, result: 1_000, arguments: 500 } as const;

/**
 * Messages as plain text for a model that summarises them: who said what, which tools were called with what, and
 * excerpts of what they gave. At most `maxCharacters` long (UTF-16 units): where that is too little, the excerpts get
 * shorter first, then the oldest messages behind the first are left out. Images are named, not shown.
 */
export function transcriptOf(messages: readonly Message[], maxCharacters: number): string {
  const whole = messages.map((message) => linesOf(message, 1));
  const length = lengthOf(whole);
  if (length <= maxCharacters) return whole.join("\n");
  const shorter = messages.map((message) => linesOf(message, (maxCharacters / length) * 0.9));
  if (lengthOf(shorter) <= maxCharacters) return shorter.join("\n");
  return newestWithin(shorter, maxCharacters);
}

function lengthOf(texts: readonly string[]): number {
  return texts.reduce((sum, text) => sum + text.length + 1, 0);
}

/** The first, which may be the summary of all before, and as many of the newest as there is room for. */
function newestWithin(texts: readonly string[], maxCharacters: number): string {
  const [first = "", ...others] = texts;
  const gap = `[${others.length} messages are left out here.]`;
  let room = maxCharacters - first.length - gap.length - 2;
  let from = others.length;
  while (from > 0 && (others[from - 1]?.length ?? 0) + 1 <= room) {
    from -= 1;
    room -= (others[from]?.length ?? 0) + 1;
  }
  const left = `[${from} messages are left out here.]`;
  return excerpt([first, left, ...others.slice(from)].join("\n"), maxCharacters);
}

function linesOf(message: Message, scale: number): string {
  const cut = (text: string, most: number): string => excerpt(text, Math.max(40, Math.floor(most * scale)));
  const text = cut(plainText(message.content), message.role === "tool" ? mostOf.result : mostOf.said);
  if (message.role === "tool") return `${message.isError ? "Failed result" : "Result"} of ${message.callId}: ${text}`;
  const calls = (message.role === "assistant" && message.toolCalls) || [];
  const lines = calls.map(
    ({ callId, name, arguments: given }) => `Call ${callId}: ${name}(${cut(given, mostOf.arguments)})`,
  );
  return text === "" && lines.length > 0
    ? lines.join("\n")
    : [`${speakerOf[message.role]}: ${text}`, ...lines].join("\n");
}

const speakerOf = { user: "User", assistant: "Assistant", system: "System" } as const;

function plainText(content: Content): string {
  if (typeof content === "string") return content;
  return content.map((part) => (part.type === "text" ? part.text : "[image]")).join(" ");
}

/** Head and tail of a text that is too long, with a mark between them; never half a character. */
function excerpt(text: string, most: number): string {
  if (text.length <= most) return text;
  const mark = ` [… ${text.length} characters …] `;
  if (most <= mark.length) return text.slice(0, most).toWellFormed();
  const room = most - mark.length;
  const tail = Math.floor(room / 3);
  return `${text.slice(0, room - tail)}${mark}${tail === 0 ? "" : text.slice(-tail)}`.toWellFormed();
}
