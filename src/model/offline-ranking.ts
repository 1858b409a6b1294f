import type { Keywords } from "./offline-keywords.ts";
import { isPresent, type Match } from "./offline-matching.ts";
import { wordsOf } from "./offline-words.ts";

/** What a score is relative to: all the passages that were looked at. */
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

/** Share of their words that two texts have in common, 0 to 1: what says the same twice is told once. */
export function similarity(first: string, second: string): number {
  const left = new Set(wordsOf(first).map((word) => word.stem));
  const right = new Set(wordsOf(second).map((word) => word.stem));
  const shared = [...left].filter((stem) => right.has(stem)).length;
  return (2 * shared) / Math.max(1, left.size + right.size);
}
