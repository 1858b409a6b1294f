import { oneLine } from "./offline-request.ts";
import { wordsOf } from "./offline-words.ts";

/** A message split into sentences that ask and sentences that state something. */
export interface Asked {
  readonly questions: readonly string[];
  readonly statements: readonly string[];
}

/**
 * Sentences with a question mark ask. If there is none, those that begin like questions or requests do; such a message
 * may also ask without being a sentence.
 */
export function askedIn(text: string): Asked {
  const sentences = sentencesOf(text);
  const marked = sentences.filter((sentence) => sentence.endsWith("?"));
  const questions = marked.length > 0 ? marked : sentences.filter(beginsAsQuestion);
  const statements = sentences.filter((sentence) => !questions.includes(sentence));
  return { questions: questions.length === 0 && asks(text) ? [text] : questions, statements };
}

function asks(text: string): boolean {
  return /\?\s*$/.test(text) || beginsAsQuestion(text);
}

function beginsAsQuestion(text: string): boolean {
  return /^(?:who|what|when|where|why|which|how|is|are|am|do|does|did|can|could|will|would|should|tell me|list|name|explain|describe|find|show)\b/i.test(
    text.trim(),
  );
}

const articles: ReadonlySet<string> = new Set(["a", "an", "the"]);
const verbForms: ReadonlyMap<string, string> = new Map(
  ["have has had having", "be is are am was were been being", "do does did"].flatMap((forms) => {
    const [base = ""] = forms.split(" ");
    return forms.split(" ").map((form): [string, string] => [form, base]);
  }),
);
const auxiliaries: ReadonlySet<string> = new Set([
  "have",
  "be",
  "do",
  "can",
  "could",
  "will",
  "would",
  "should",
  "may",
]);
const questionWords: ReadonlySet<string> = new Set("who whom whose what which where when why how".split(" "));
const mostWords = 30;

/** All words except articles, with stop words, each verb in one form: `["anna", "have", "key"]`. */
function plainWords(text: string): string[] {
  return wordsOf(text)
    .flatMap((word) => {
      const lower = word.text.toLowerCase().replaceAll("’", "'");
      const [, verb, negated] = /^(.+?)(n't)$/.exec(lower) ?? [undefined, lower];
      const plain = verbForms.get(verb) ?? (verb === lower ? word.stem : verb);
      return negated === undefined ? [plain] : [plain, "not"];
    })
    .filter((word) => !articles.has(word));
}

/**
 * The word orders in which a statement may answer the question: "has the key" for "Who has the key?", "Anna have" for
 * "What does Anna have?", "key be" for "Where is the key?".
 */
function statedOrders(question: string): string[][] {
  const words = plainWords(question).slice(0, mostWords);
  const rest = words.slice(words.findIndex((word) => questionWords.has(word)) + 1);
  const auxiliary = rest.findIndex((word) => auxiliaries.has(word));
  if (auxiliary < 0) return [rest];
  const verb = rest[auxiliary] ?? "";
  // "What colour is the box?": a statement such as "the box is red" does not contain the word "colour".
  const asked = rest.slice(auxiliary + 1);
  const inverted = asked.map((_, place) => [...asked.slice(0, place + 1), verb, ...asked.slice(place + 1)]);
  return [rest, rest.slice(auxiliary), verb === "do" ? asked : [], ...inverted].filter((order) => order.length > 1);
}

/**
 * Scores statements from 0 to 1: the share of the question's neighbouring words that are neighbours in the statement
 * too.
 */
export function statedShare(question: string): (statement: string) => number {
  const orders = statedOrders(question).map(pairsOf);
  return (statement) => {
    const said = new Set(pairsOf(plainWords(statement)));
    const shares = orders.map((pairs) => pairs.filter((pair) => said.has(pair)).length / Math.max(1, pairs.length));
    return Math.max(0, ...shares);
  };
}

function pairsOf(words: readonly string[]): string[] {
  return words.slice(1).map((word, index) => `${words[index]} ${word}`);
}

const places =
  /\b(?:in|into|inside|on|at|under|over|above|below|behind|beside|between|near|by|from|to|next|left|right|here|there)\b/i;
const times =
  /\d|\b(?:noon|midnight|o'clock|today|tomorrow|yesterday|morning|evening|night|week|month|year|(?:mon|tues|wednes|thurs|fri|satur|sun)day|january|february|march|april|may|june|july|august|september|october|november|december|before|after|when)\b/i;
const numbers =
  /\d|\b(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|dozen|hundred|thousand|no|none|both)\b/i;
const reasons = /\b(?:because|since|so that|therefore|reason|due to|in order to)\b/i;

const givenBy: readonly (readonly [asks: RegExp, gives: RegExp])[] = [
  [/\bwhere\b/i, places],
  [/\bwhen\b|\bwhat time\b/i, times],
  [/\bhow (?:many|much|old|long|far|tall|big|often)\b/i, numbers],
  [/\bwhy\b/i, reasons],
];

/** True if a statement has the place, time, number or reason that the question asks for; undefined for other questions. */
export function givesAskedFor(question: string, statement: string): boolean | undefined {
  return givenBy.find(([asked]) => asked.test(question))?.[1].test(statement);
}

/** True if just one of the two sentences is negated. */
export function contradicts(question: string, statement: string): boolean {
  return denies(question) !== denies(statement);
}

function denies(text: string): boolean {
  return /\b(?:not|never|no longer|nobody|nothing|nowhere|neither|none|cannot)\b|n['’]t\b/i.test(text);
}

const abbreviation = /(?:^|[\s(])(?:e\.g|i\.e|etc|vs|cf|approx|dr|mrs?|ms|no|fig|ca|incl|resp|\p{Lu})\.$/iu;

/**
 * The sentences of a text. Blank lines and list markers end a sentence like a full stop; a single line break does not.
 */
export function sentencesOf(text: string): string[] {
  return text
    .split(/\n\s*\n|\n(?=\s*(?:[-*+]|\d+[.)])\s)/u)
    .flatMap((block) => {
      const sentences: string[] = [];
      let start = "";
      for (const piece of oneLine(block.replace(/^\s*(?:[-*+]|\d+[.)])\s+/u, "")).split(
        /(?<=[.!?][)"'”’*_]*) (?=[\p{Lu}\p{N}"'“‘`*_[(<#])/u,
      )) {
        const sentence = start === "" ? piece : `${start} ${piece}`;
        start = abbreviation.test(sentence) ? sentence : "";
        if (start === "") sentences.push(sentence);
      }
      return start === "" ? sentences : [...sentences, start];
    })
    .filter((sentence) => /[\p{L}\p{N}]/u.test(sentence));
}
