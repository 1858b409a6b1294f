import { wordsOf, stemOf } from "../model/index.ts";
import type { Keywords } from "./keywords.ts";

/** Text around a passage that counts for it, such as its headings; nearer text counts more. */
export interface Surrounding {
  readonly text: string;
  /** 0 to 1. */
  readonly weight: number;
}

/** Only headings have this weight. */
export const nearestHeadingWeight = 0.8;
const middleHeadingWeight = 0.6;
const titleWeight = 0.4;
const pathWeight = 0.3;

/** The headings of a passage, nearest first, and its path. Title and path weigh least, since all passages share them. */
export function surroundingsOf(path: string, headings: readonly string[]): Surrounding[] {
  const around = headings.toReversed().map((text, index): Surrounding => {
    if (index === 0) return { text, weight: nearestHeadingWeight };
    return { text, weight: index === headings.length - 1 ? titleWeight : middleHeadingWeight };
  });
  return [...around, { text: path.replaceAll(/[/._-]/g, " "), weight: pathWeight }];
}

/** How often each keyword occurs in a passage, by the keyword's index. */
export interface Match {
  /** Occurrences; a part of an identifier or a synonym counts for less than one, once: see `isPresent`. */
  readonly own: readonly number[];
  /** Weight of the nearest surrounding text that has the keyword; 0 where none has. */
  readonly around: readonly number[];
  /** Words of the passage. */
  readonly length: number;
  /** Neighbouring keywords of the question that are neighbours here too. */
  readonly pairs: number;
  readonly phrases: number;
}

const identifierPartCount = 0.6;
const synonymCount = 0.5;

/** True if a count means the word itself, even within an identifier, and not only a synonym. */
export function isPresent(count: number | undefined): boolean {
  return count !== undefined && count >= identifierPartCount;
}
const mostPairs = 3;

/** Finds the keywords in a passage and in what surrounds it. Undefined when there are none at all. */
export function matchPassage(
  keywords: Keywords,
  text: string,
  surroundings: readonly Surrounding[] = [],
): Match | undefined {
  const lookup = lookupOf(keywords);
  const { counts, places, length } = countIn(keywords, lookup, text);
  const around = counts.map(() => 0);
  for (const surrounding of surroundings) {
    countsAround(keywords, lookup, surrounding.text).forEach((count, index) => {
      if (isPresent(count)) around[index] = Math.max(around[index] ?? 0, surrounding.weight);
    });
  }
  if (!counts.some((count) => count > 0) && !around.some((weight) => weight > 0)) return undefined;
  const lower = keywords.phrases.length > 0 ? text.toLowerCase().replace(/\s+/gu, " ") : "";
  const phrases = keywords.phrases.filter((phrase) => lower.includes(phrase)).length;
  return { own: counts, around, length, pairs: pairsIn(keywords, places), phrases };
}

/**
 * True if a passage has enough of the question to answer it: a quoted phrase, or two of its strong keywords (three of
 * more than seven), one of them itself and not only in its headings.
 */
export function isRelevant(keywords: Keywords, match: Match): boolean {
  if (keywords.phrases.length > 0) return match.phrases > 0;
  let strong = 0;
  let own = 0;
  let either = 0;
  keywords.words.forEach((keyword, index) => {
    if (!keyword.isStrong) return;
    strong += 1;
    const given = match.own[index] ?? 0;
    const count = isPresent(given) ? 1 : given;
    own += count;
    either += Math.max(count, (match.around[index] ?? 0) > 0 ? 1 : 0);
  });
  const needed = strong <= 1 ? strong : strong <= 7 ? 2 : 3;
  return needed > 0 && own >= 1 && either >= needed;
}

/** True if a text is relevant to the question or to one of its parts. */
export function speaksTo(keywords: Keywords, text: string, surroundings: readonly Surrounding[] = []): boolean {
  return (keywords.parts.length > 0 ? keywords.parts : [keywords]).some((part) => {
    const match = matchPassage(part, text, surroundings);
    return match !== undefined && isRelevant(part, match);
  });
}

interface Lookup {
  readonly whole: ReadonlyMap<string, number>;
  readonly part: ReadonlyMap<string, readonly number[]>;
  readonly synonym: ReadonlyMap<string, readonly number[]>;
  /** Headings hold for many passages: each is counted once. */
  readonly around: Map<string, readonly number[]>;
}

const lookups = new WeakMap<Keywords, Lookup>();

function lookupOf(keywords: Keywords): Lookup {
  const known = lookups.get(keywords);
  if (known !== undefined) return known;
  const whole = new Map<string, number>();
  const part = new Map<string, number[]>();
  const synonym = new Map<string, number[]>();
  keywords.words.forEach((keyword, index) => {
    whole.set(keyword.stem, index);
    for (const stem of keyword.parts) part.set(stem, [...(part.get(stem) ?? []), index]);
    if (!keyword.isStrong) return;
    for (const stem of synonymsOf(keyword.stem)) synonym.set(stem, [...(synonym.get(stem) ?? []), index]);
  });
  const lookup: Lookup = { whole, part, synonym, around: new Map() };
  lookups.set(keywords, lookup);
  return lookup;
}

interface Count {
  readonly counts: readonly number[];
  /** Positions of each keyword in the text, by the keyword's index. */
  readonly places: readonly (readonly number[])[];
  readonly length: number;
}

const mostAround = 5_000;

function countsAround(keywords: Keywords, lookup: Lookup, text: string): readonly number[] {
  const known = lookup.around.get(text);
  if (known !== undefined) return known;
  const { counts } = countIn(keywords, lookup, text);
  if (lookup.around.size < mostAround) lookup.around.set(text, counts);
  return counts;
}

function countIn(keywords: Keywords, lookup: Lookup, text: string): Count {
  const places = keywords.words.map((): number[] => []);
  const parts = keywords.words.map((): Set<string> | undefined => undefined);
  const bySynonym = new Set<number>();
  const inIdentifier = new Set<number>();
  const words = wordsOf(text);
  const note = (stem: string, place: number, isIdentifierPart: boolean): void => {
    const index = lookup.whole.get(stem);
    if (index !== undefined && isIdentifierPart) inIdentifier.add(index);
    else if (index !== undefined && places[index]?.at(-1) !== place) places[index]?.push(place);
    for (const other of lookup.synonym.get(stem) ?? []) bySynonym.add(other);
    for (const other of lookup.part.get(stem) ?? []) parts[other] = (parts[other] ?? new Set()).add(stem);
  };
  words.forEach((word, place) => {
    note(word.stem, place, false);
    for (const part of word.parts) note(part, place, word.isCode);
  });
  const counts = keywords.words.map((keyword, index) => {
    const whole = places[index]?.length ?? 0;
    if (whole > 0) return whole;
    if (keyword.parts.length > 1 && parts[index]?.size === new Set(keyword.parts).size) return 1;
    if (inIdentifier.has(index)) return identifierPartCount;
    return bySynonym.has(index) ? synonymCount : 0;
  });
  return { counts, places, length: words.length };
}

function pairsIn(keywords: Keywords, places: readonly (readonly number[])[]): number {
  let pairs = 0;
  for (let index = 1; index < keywords.words.length; index += 1) {
    const left = keywords.words[index - 1];
    const right = keywords.words[index];
    if (left === undefined || right === undefined || right.position - left.position > 2) continue;
    const before = places[index - 1] ?? [];
    if (places[index]?.some((place) => before.some((other) => place > other && place - other <= 2)) === true)
      pairs += 1;
  }
  return Math.min(pairs, mostPairs);
}

/** General English words that documents use for one another, one group a line. */
const groups = `
kill crash die terminate
delete remove erase
create make build
error failure exception
fail break
begin start launch
end finish complete
limit bound cap maximum
fast quick speed performance
install setup
configure configuration option setting
folder directory
restart resume recover
price cost money
spend cost money
person user human
several multiple many
check validate verify
change modify update edit
show display print
send emit dispatch
receive get accept
save store persist
parallel concurrent simultaneous
wait block
allow permit
forbid refuse deny reject
require need demand
parameter argument
method function
repeat retry again
stop cancel abort halt
default fallback
nested inner child
type kind
list array
purpose reason
machine process
`;

const synonyms: ReadonlyMap<string, readonly string[]> = readGroups();

/** Stems of the synonyms of a word, without itself. */
function synonymsOf(stem: string): readonly string[] {
  return synonyms.get(stem) ?? [];
}

function readGroups(): Map<string, string[]> {
  const found = new Map<string, string[]>();
  for (const line of groups.trim().split("\n")) {
    const stems = line.split(" ").map(stemOf);
    for (const stem of stems) {
      found.set(stem, [...(found.get(stem) ?? []), ...stems.filter((other) => other !== stem)]);
    }
  }
  return found;
}

/** Statistics of all passages, which scores are relative to. */
export interface Statistics {
  readonly passages: number;
  /** Passages that have the keyword themselves, by the keyword's index. */
  readonly containing: readonly number[];
  /** Words. */
  readonly averageLength: number;
}

const saturation = 1.2;
const lengthInfluence = 0.5;
const aroundShare = 0.5;
const pairBonus = 0.3;
const tooShort = 3;
const leastAverageLength = 8;

/** Statistics of all passages, given the matches of those that have a keyword. */
export function statisticsOf(keywords: Keywords, matches: readonly Match[], passages: number): Statistics {
  const containing = keywords.words.map((_, index) => matches.filter((match) => isPresent(match.own[index])).length);
  const total = matches.reduce((sum, match) => sum + match.length, 0);
  return {
    passages: Math.max(passages, matches.length),
    containing,
    averageLength: Math.max(leastAverageLength, total / Math.max(1, matches.length)),
  };
}

/** BM25 over the passage's own words, plus a share for its surroundings, raised by coverage, neighbours and phrases. */
export function scoreMatch(keywords: Keywords, match: Match, statistics: Statistics): number {
  let score = 0;
  let covered = 0;
  let possible = 0;
  const norm = 1 - lengthInfluence + (lengthInfluence * match.length) / statistics.averageLength;
  keywords.words.forEach((keyword, index) => {
    const containing = Math.min(statistics.passages, statistics.containing[index] ?? 0);
    const rarity = Math.log(1 + (statistics.passages - containing + 0.5) / (containing + 0.5)) * keyword.weight;
    const count = match.own[index] ?? 0;
    const own = (count * (saturation + 1)) / (count + saturation * norm);
    const around = match.around[index] ?? 0;
    score += rarity * Math.max(own, aroundShare * around);
    possible += rarity;
    covered += rarity * Math.max(Math.min(1, count), around);
  });
  const coverage = possible === 0 ? 0 : covered / possible;
  const isShort = match.length < tooShort ? 0.5 : 1;
  return score * (0.4 + coverage) * (1 + pairBonus * match.pairs) * (1 + match.phrases) * isShort;
}

/** Share of words that two texts have in common, 0 to 1, to leave out repetitions. */
export function similarity(first: string, second: string): number {
  const left = new Set(wordsOf(first).map((word) => word.stem));
  const right = new Set(wordsOf(second).map((word) => word.stem));
  const shared = [...left].filter((stem) => right.has(stem)).length;
  return (2 * shared) / Math.max(1, left.size + right.size);
}
