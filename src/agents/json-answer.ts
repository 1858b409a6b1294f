/** The tags around a model's thoughts if the server leaves them in the text. */
const thoughtTags = [
  ["<think>", "</think>"],
  ["<thinking>", "</thinking>"],
  ["<thought>", "</thought>"],
  ["<reasoning>", "</reasoning>"],
  ["<seed:think>", "</seed:think>"],
  ["[THINK]", "[/THINK]"],
  ["<|channel|>analysis", "<|end|>"],
] as const;

/** The answer of gpt-oss starts after these markers if the server leaves them in the text. */
const finalChannel = "<|channel|>final";
const channelMarks = /<\|(?:start|channel|message|end|return)\|>/g;

/**
 * How many characters beyond the text's length are searched for JSON: each unclosed bracket is searched to the end of the text.
 */
const MOST_SEARCHED = 1_000_000;
/** Maximum number of JSON documents that are tried per answer; the last ones are tried. */
const MOST_DOCUMENTS = 16;

/**
 * The JSON documents of an answer without thoughts, the last one first. If the text as a whole is JSON, it is the only document.
 * Otherwise the documents are the contents of fenced blocks, and complete objects and lists in the rest.
 */
export function jsonDocumentsIn(text: string): readonly unknown[] {
  const whole = valueOf(text) ?? valueOf(withoutThoughts(text));
  if (whole) return [whole.value];
  const documents = withoutThoughts(text)
    .split(/^[ \t]*```[\w-]*[ \t]*\r?$/m)
    .flatMap((section, index) => {
      const fenced = index % 2 === 1 ? valueOf(section) : undefined;
      return fenced ? [fenced.value] : containersIn(section);
    });
  return documents.toReversed().slice(0, MOST_DOCUMENTS);
}

function valueOf(text: string): { readonly value: unknown } | undefined {
  try {
    return { value: JSON.parse(text) as unknown };
  } catch {
    return undefined;
  }
}

/**
 * The text without thoughts. One tag of a pair may be missing: the template has already written the opening tag, or the answer
 * was cut off.
 */
export function withoutThoughts(text: string): string {
  let rest = text;
  for (const [open, close] of thoughtTags) rest = withoutSections(rest, open, close);
  const final = rest.lastIndexOf(finalChannel);
  return (final < 0 ? rest : rest.slice(final + finalChannel.length)).replaceAll(channelMarks, "");
}

/** Tags are matched case-insensitively. */
function withoutSections(text: string, open: string, close: string): string {
  const searched = text.replaceAll(/[A-Z]+/g, (letters) => letters.toLowerCase());
  const [opening, closing] = [open.toLowerCase(), close.toLowerCase()];
  let rest = "";
  let from = 0;
  for (;;) {
    const start = searched.indexOf(opening, from);
    const end = searched.indexOf(closing, from);
    if (end < 0) return rest + text.slice(from, start < 0 ? text.length : start);
    // Without an opening tag before it, all text up to the closing tag is thoughts.
    rest = start < 0 || start > end ? "" : rest + text.slice(from, start);
    from = end + close.length;
  }
}

/** The complete, non-nested objects and lists in a text that is not JSON, in order. */
function containersIn(text: string): unknown[] {
  const found: unknown[] = [];
  let room = text.length + MOST_SEARCHED;
  for (let start = nextBracket(text, 0); start >= 0 && room > 0; ) {
    const end = endOfContainer(text, start, room);
    room -= (end < 0 ? text.length : end) - start;
    const read = end < 0 ? undefined : valueOf(text.slice(start, end));
    if (read) found.push(read.value);
    start = nextBracket(text, read ? end : start + 1);
  }
  return found;
}

function nextBracket(text: string, from: number): number {
  for (let index = from; index < text.length; index += 1) if (text[index] === "{" || text[index] === "[") return index;
  return -1;
}

/** The index after the bracket that closes the one at `start`, or -1. */
function endOfContainer(text: string, start: number, room: number): number {
  let depth = 0;
  let isInString = false;
  const limit = Math.min(text.length, start + room);
  for (let index = start; index < limit; index += 1) {
    const character = text[index];
    if (isInString) {
      if (character === "\\") index += 1;
      else if (character === '"') isInString = false;
    } else if (character === '"') isInString = true;
    else if (character === "{" || character === "[") depth += 1;
    else if (character === "}" || character === "]") depth -= 1;
    if (depth === 0) return index + 1;
  }
  return -1;
}
