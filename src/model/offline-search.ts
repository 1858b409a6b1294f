import { stem } from "porter2";
import type { Passage } from "./offline-passages.ts";

/** Words without meaning for the search: articles, pronouns, auxiliaries, question words, polite and filler words. */
const stopWords: ReadonlySet<string> = new Set(
  (
    "a about above after again against all also am an and any anybody anyone anything are as at away be because been before being below between both but by can " +
    "cannot could did do does doing done down during each either else even ever every for from further give given goes going had has have having he her here hers " +
    "him his how however i if in instead into is it its itself just know let like look many may me might mine more most much must my myself neither never no nor " +
    "not now of off often on once one only onto or other our ours out over own please quite rather really same shall she should show since so some somebody " +
    "someone something still such sure tell than thank thanks that the their theirs them then there these they this those though through thus to too toward under " +
    "until up upon us very was way ways we were what when where whether which while who whom whose why will with within without would yet you your yours yourself " +
    "according answer describe explain question say says e.g i.e etc"
  ).split(" "),
);

/** Stems that are ignored if the text has other significant words. */
const weakWords =
  /^(?:actually|become|behave|case|detail|differ|document|exampl|file|folder|get|happen|help|kind|make|mean|project|possibl|thing|tri|typic|use|usual|want|work)$/;

/** Irregular forms that the stemmer does not know: the base form, then its forms. */
const irregularForms: ReadonlyMap<string, string> = new Map(
  (
    "be is are am was were been being, have has had having, do does did done, begin began begun, break broke broken, bring brought, build built, buy bought, " +
    "choose chose chosen, come came, fall fell fallen, find found, give gave given, go went gone, hold held, keep kept, know knew known, lead led, leave left, " +
    "lose lost, make made, meet met, pay paid payment payments, run ran, say said, see saw seen, sell sold, send sent, speak spoke spoken, spend spent, " +
    "take took taken, tell told, think thought, write wrote written, child children, person people, man men, woman women, index indices, create creation creations"
  )
    .split(", ")
    .flatMap((forms) => forms.split(" ").map((form, _, [base = form]): [string, string] => [form, base])),
);

/** A word as written, its stem, and the stems of a compound's components (`maxTokens`, `run-away`, `z.infer`). */
interface Word {
  readonly text: string;
  readonly stems: readonly [whole: string, ...parts: string[]];
}

/**
 * The English stem of a word, so that `approve`, `approves` and `approval` match. Identifiers and words of other languages are unchanged.
 */
export function stemOf(word: string): string {
  const lower = word.toLowerCase();
  const isPlain = /^[a-z-]+$/.test(lower) && !/[a-z][A-Z]/.test(word);
  return isPlain ? stem(irregularForms.get(lower) ?? lower) : lower;
}

/** Cache of parsed words, cleared at 20,000 entries. */
const knownWords = new Map<string, Word>();

/** The words of a text in order, stop words included. */
function splitWords(text: string): Word[] {
  const plain = text.replaceAll(/(?<=[a-z])n['’]t\b/gi, " not");
  return Array.from(plain.matchAll(/[\p{L}\p{N}_$]+(?:[.-][\p{L}\p{N}_$]+)*/gu), ([word]) => {
    const known = knownWords.get(word);
    if (known !== undefined) return known;
    const parts = word.replace(/([\p{Ll}\p{N}])(\p{Lu})/gu, "$1 $2").split(/[\s._$-]+/u);
    const read: Word = { text: word, stems: [stemOf(word), ...(parts.length > 1 ? parts.map(stemOf) : [])] };
    if (knownWords.size >= 20_000) knownWords.clear();
    knownWords.set(word, read);
    return read;
  });
}

/** The stems in a text, including those of a compound's components. */
export function stemsIn(text: string): string[] {
  return splitWords(text).flatMap(({ stems }) => stems);
}

/** Neighbouring words of a text, sorted within each pair, so that "is the box" and "the box is" match. */
export function pairsIn(text: string): string[] {
  const words = splitWords(text).filter((word) => !/^(?:an?|the)$/i.test(word.text));
  return words.slice(1).map(({ stems: [one] }, index) => {
    const other = words[index]?.stems[0] ?? "";
    return one < other ? `${one} ${other}` : `${other} ${one}`;
  });
}

/** The stems of the significant words of a text, each once, with the word as written. */
export function termsOf(text: string): ReadonlyMap<string, string> {
  const words = splitWords(text).filter(
    (word) => !stopWords.has(word.text.toLowerCase()) && !/^\p{L}$/u.test(word.text),
  );
  const strong = words.filter(({ stems: [stem] }) => !weakWords.test(stem));
  return new Map((strong.length > 0 ? strong : words).map((word) => [word.stems[0], word.text]));
}

/** Passages with some of the terms, best first: by BM25 over text and headings, and by the number of matching terms. */
export async function rank<Found extends Pick<Passage, "text" | "headings">>(
  passages: readonly Found[],
  boostOf: ReadonlyMap<string, number>,
  weightOf: (passage: Found, index: number) => number,
  tokenize: (text: string) => readonly string[] = stemsIn,
): Promise<Found[]> {
  const { default: MiniSearch } = await import("minisearch");
  const index = new MiniSearch<{ readonly id: number; readonly text: string; readonly headings: string }>({
    fields: ["text", "headings"],
    tokenize: (text) => [...tokenize(text)],
    // Other words count towards the length of a passage but are not indexed.
    processTerm: (term) => (boostOf.has(term) ? term : null),
  });
  index.addAll(passages.map(({ text, headings }, id) => ({ id, text, headings: headings.join("\n") })));
  const hits = index.search([...boostOf.keys()].join("\n"), {
    tokenize: (text) => text.split("\n"),
    boost: { text: 3 },
    boostTerm: (term) => boostOf.get(term) ?? 0,
    boostDocument: (id) => weightOf(passages[Number(id)] as Found, Number(id)),
  });
  hits.sort((one, other) => other.score * other.queryTerms.length - one.score * one.queryTerms.length);
  return hits.flatMap(({ id }) => passages[Number(id)] ?? []);
}

/** How many terms are missing until the text answers a question: it needs half of the terms, and at least two. */
export function missingTerms(terms: ReadonlyMap<string, unknown>, text: string): number {
  const stems = new Set(stemsIn(text));
  const found = [...terms.keys()].filter((stem) => stems.has(stem)).length;
  if (found === 0) return terms.size === 0 ? 1 : Number.POSITIVE_INFINITY;
  return Math.max(Math.min(2, terms.size), Math.ceil(terms.size / 2)) - found;
}
