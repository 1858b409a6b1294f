import { isIdentifier, isStopWord, stemOf, wordsOf } from "../model/index.ts";

/** One thing to look for. */
interface Keyword {
  /** As the question has it. */
  readonly text: string;
  readonly stem: string;
  /** Stems of a compound's parts: all of them together count as the word. */
  readonly parts: readonly string[];
  /** 1 for a plain word, more for identifiers and quoted words, less for words that say little. */
  readonly weight: number;
  /** False for words that say little: they rank, but make nothing relevant. */
  readonly isStrong: boolean;
  /** Place among the question's words, for nearness. */
  readonly position: number;
}

/** The kind of answer that a question asks for. It decides which sentences are preferred. */
type QuestionKind = "definition" | "number" | "reason" | "other";

export interface Keywords {
  readonly question: string;
  readonly kind: QuestionKind;
  readonly words: readonly Keyword[];
  /** Passages in double quotes of two words and more, lower case, white space normalised. */
  readonly phrases: readonly string[];
  /** The questions of which it consists, if it is more than one: a passage answers one of them, not all. */
  readonly parts: readonly Keywords[];
}

const identifierWeight = 1.5;
const quotedWeight = 1.5;
const weakWeight = 0.3;
const maxKeywords = 24;

/**
 * The keywords of a question: its words without stop words, each once, in order. A short follow-up also gets those of
 * `previous`, the question before.
 */
export function keywordsOf(question: string, previous?: string): Keywords {
  const whole = readKeywords(question, previous);
  const questions = question.split(/\?\s+|[,;]?\s+and\s+(?=(?:who|what|when|where|why|which|how|does|is|are|can)\b)/i);
  const parts = questions.map((part) => readKeywords(part)).filter((part) => part.words.some((word) => word.isStrong));
  return parts.length > 1 && whole.phrases.length === 0 ? { ...whole, parts } : whole;
}

function readKeywords(question: string, previous?: string): Keywords {
  const own = collect(question);
  const strong = own.filter((word) => word.isStrong).length;
  const words = previous !== undefined && strong < 2 && isFollowUp(question) ? merge(own, collect(previous)) : own;
  return {
    question,
    kind: kindOf(question),
    words: words.slice(0, maxKeywords),
    phrases: phrasesOf(question),
    parts: [],
  };
}

/** The query for a search tool: the question's own words, phrases in quotes. */
export function queryOf(keywords: Keywords): string {
  const quoted = keywords.phrases.map((phrase) => `"${phrase}"`);
  const inPhrases = new Set(keywords.phrases.flatMap((phrase) => wordsOf(phrase).map((word) => word.stem)));
  const strong = keywords.words.filter((word) => word.isStrong);
  const words = strong.length > 0 ? strong : keywords.words;
  return [...quoted, ...words.filter((word) => !inPhrases.has(word.stem)).map((word) => word.text)].join(" ");
}

function collect(question: string): Keyword[] {
  const quoted = new Set(quotationsOf(question).flatMap((quotation) => wordsOf(quotation).map((word) => word.stem)));
  const found = new Map<string, Keyword>();
  wordsOf(question).forEach((word, position) => {
    const isQuoted = quoted.has(word.stem);
    const isCode = isIdentifier(word.text);
    if (found.has(word.stem) || (!isQuoted && isStopWord(word.text.toLowerCase()))) return;
    if (word.text.length < 2 && !/\d/.test(word.text) && !isQuoted) return;
    const isStrong = isQuoted || isCode || !weakStems.has(word.stem);
    const weight = (isStrong ? 1 : weakWeight) * (isCode ? identifierWeight : 1) * (isQuoted ? quotedWeight : 1);
    found.set(word.stem, { text: word.text, stem: word.stem, parts: word.parts, weight, isStrong, position });
  });
  const words = [...found.values()];
  return words.some((word) => word.isStrong) ? words : words.map((word) => ({ ...word, isStrong: true, weight: 1 }));
}

/** Words that say little on their own: they rank, but do not make a sentence relevant. */
const weakStems: ReadonlySet<string> = new Set(
  (
    "actually allow alway become behave call case detail different document documentation good best better docs ensure exactly example file folder get happen help " +
    "kind list main make mean need new possible project provide put set support take thing try two type typically use usually want work"
  )
    .split(" ")
    .map(stemOf),
);

function merge(own: readonly Keyword[], earlier: readonly Keyword[]): Keyword[] {
  const known = new Set(own.map((word) => word.stem));
  const added = earlier.filter((word) => !known.has(word.stem));
  return [...own, ...added.map((word) => ({ ...word, position: word.position + 1_000 }))];
}

/** True for a question that refers to the one before: "And for subagents?", "What about them?". */
function isFollowUp(question: string): boolean {
  return /^(?:and|but|or|also|what about|how about|then|so)\b|\b(?:it|its|they|them|that|those|this|these)\b/i.test(
    question.trim(),
  );
}

function quotationsOf(text: string): string[] {
  return [...text.matchAll(/["“”]([^"“”\n]{1,200})["“”]|`([^`\n]{1,200})`/gu)].map(
    (match) => match[1] ?? match[2] ?? "",
  );
}

function phrasesOf(question: string): string[] {
  return quotationsOf(question)
    .map((phrase) => phrase.toLowerCase().replace(/\s+/gu, " ").trim())
    .filter((phrase) => phrase.includes(" "));
}

function kindOf(question: string): QuestionKind {
  if (
    /\b(?:how (?:many|much|long|often|big|large|fast|old)|when|what (?:number|version|year|port|size))\b/i.test(
      question,
    )
  )
    return "number";
  if (/\bwhy\b|\bwhat (?:is|are) the reasons?\b/i.test(question)) return "reason";
  if (/\bwhat(?:'s| is| are)\b|\bwhat does .{1,80} mean\b|\bdefine\b|\bmeaning of\b/i.test(question))
    return "definition";
  return "other";
}
