import { stemOf, wordsOf } from "../model/index.ts";
import type { Keywords } from "./keywords.ts";
import {
  type Match,
  isPresent,
  isRelevant,
  matchPassage,
  nearestHeadingWeight,
  type Surrounding,
  type Statistics,
  statisticsOf,
  scoreMatch,
  similarity,
} from "./matching.ts";
import { isProse } from "./passages.ts";

/** A statement with its place, as in `path:line: text`, and the headings above it if a search gave them. */
export interface Finding {
  readonly path: string;
  readonly line: number;
  readonly text: string;
  /** Outermost first. */
  readonly headings: readonly string[];
}

/** A passage that may belong to the answer. */
export interface Candidate extends Finding {
  readonly surroundings: readonly Surrounding[];
  /** True for the first passage under a heading: the heading counts for it even if it repeats no word of the question. */
  readonly opensSection: boolean;
  /** The passages after it that belong to it, as the items after "such as:". */
  readonly followers: readonly Finding[];
  /** Weight by the kind of its source, 0 to 1. */
  readonly trust: number;
  /** Its reader has judged it relevant. */
  readonly isVouchedFor: boolean;
}

export interface RankedCandidate extends Candidate {
  readonly score: number;
}

interface RankOptions {
  readonly most: number;
  readonly mostPerFile: number;
  /** Results of searches, for their word counts. */
  readonly searches: readonly string[];
  /** Candidates below this share of the best score are left out. */
  readonly leastShare?: number;
}

const leastShareOfBest = 0.45;
const sameStatement = 0.75;

/** The candidates that speak to the question, best first, each statement once; of several questions, in turns. */
export function rankCandidates(
  keywords: Keywords,
  candidates: readonly Candidate[],
  options: RankOptions,
): RankedCandidate[] {
  if (keywords.parts.length === 0) return distinct(rankPart(keywords, candidates, options), options);
  const parts = keywords.parts.map((part) => distinct(rankPart(part, candidates, options), options));
  const longest = Math.max(...parts.map((part) => part.length));
  const inTurns = Array.from({ length: longest }, (_, place) => parts.flatMap((part) => part.slice(place, place + 1)));
  return distinct(inTurns.flat(), { ...options, leastShare: 0 });
}

function rankPart(keywords: Keywords, candidates: readonly Candidate[], options: RankOptions): RankedCandidate[] {
  const matched = candidates.flatMap((candidate) => {
    const match = matchPassage(keywords, candidate.text, candidate.surroundings);
    return match === undefined ? [] : [{ candidate, match }];
  });
  const statistics = corpusStatistics(
    keywords,
    options.searches,
    matched.map(({ match }) => match),
  );
  return matched
    .filter(({ candidate, match }) => candidate.isVouchedFor || isAnswer(keywords, candidate, match))
    .map(({ candidate, match }): RankedCandidate => {
      const score =
        scoreMatch(keywords, match, statistics) *
        emphasisOf(keywords, candidate.text) *
        candidate.trust *
        weightOfKind(keywords, candidate) *
        announcementBonus(candidate, match);
      return { ...candidate, score };
    })
    .sort(
      (left, right) => right.score - left.score || left.path.localeCompare(right.path, "en") || left.line - right.line,
    );
}

function isAnswer(keywords: Keywords, candidate: Candidate, match: Match): boolean {
  if (isRelevant(keywords, match)) return true;
  if (!candidate.opensSection || keywords.phrases.length > 0) return false;
  const strong = keywords.words.filter((word) => word.isStrong);
  const inHeading = matchPassage({ ...keywords, words: strong }, candidate.surroundings[0]?.text ?? "");
  const covered = inHeading?.own.filter(isPresent).length ?? 0;
  return covered >= Math.min(2, strong.length) && covered >= strong.length / 2;
}

/** "To install:" is short, but what it announces is not. */
function announcementBonus({ followers }: Candidate, match: Match): number {
  return followers.length === 0 ? 1 : match.length < 3 ? 2.4 : 1.2;
}

function distinct(ranked: readonly RankedCandidate[], options: RankOptions): RankedCandidate[] {
  const least = (ranked[0]?.score ?? 0) * (options.leastShare ?? leastShareOfBest);
  const chosen: RankedCandidate[] = [];
  for (const candidate of ranked) {
    if (chosen.length >= options.most || candidate.score < least) break;
    const ofFile = chosen.filter((other) => other.path === candidate.path);
    if (ofFile.length >= options.mostPerFile) continue;
    const told = chosen.flatMap((other) => [other, ...other.followers]);
    if (
      told.some(
        (other) =>
          (other.path === candidate.path && other.line === candidate.line && other.text === candidate.text) ||
          similarity(other.text, candidate.text) >= sameStatement,
      )
    )
      continue;
    chosen.push(candidate);
  }
  return chosen;
}

/** Code repeats words without answering, so it weighs less, and comments more; a heading with all the words weighs most. */
function weightOfKind(keywords: Keywords, { path, text, surroundings }: Candidate): number {
  const [heading] = surroundings;
  if (heading !== undefined && heading.weight >= nearestHeadingWeight && hasAll(keywords, heading.text)) return 1.6;
  if (isProse(path)) return looksLikeCode(text) ? (keywords.kind === "other" ? 0.6 : 0.3) : 1;
  return /^(?:\/\/|\/?\*|#|--|;|<!--)|\s\/\/\s/.test(text) ? 0.4 : 0.2;
}

function hasAll(keywords: Keywords, text: string): boolean {
  const strong = keywords.words.filter((word) => word.isStrong);
  const found = matchPassage(keywords, text)?.own.filter(
    (count, index) => isPresent(count) && keywords.words[index]?.isStrong,
  );
  return strong.length >= 2 && (found?.length ?? 0) >= strong.length;
}

function looksLikeCode(text: string): boolean {
  return /[;{}\]]$|[;{(]\s*\/\/|=>|^(?:const|let|import|export|return|await|type|function|\/\/)\s|\w\(.*\)$/.test(text);
}

/** Prefers what the kind of question asks for: a definition, a number, a reason. Questions answer nothing. */
function emphasisOf(keywords: Keywords, text: string): number {
  const asks = text.endsWith("?") ? 0.4 : 1;
  if (keywords.kind === "number") return asks * (/\d/.test(text) ? 1.4 : 1);
  if (keywords.kind === "reason")
    return asks * (/\b(?:because|since|so that|therefore|reason|otherwise|avoids?|to prevent)\b/i.test(text) ? 1.4 : 1);
  if (keywords.kind === "definition") return asks * (defines(keywords, text) ? 1.7 : 1);
  return asks;
}

/** "A lease is …", "**Lease**: …": the subject of the question opens the sentence and a copula follows. */
function defines(keywords: Keywords, text: string): boolean {
  const opening = wordsOf(text.slice(0, 160)).slice(0, 8);
  const subjects = new Set(keywords.words.filter((word) => word.isStrong).map((word) => word.stem));
  const at = opening.findLastIndex((word, index) => index < 4 && subjects.has(word.stem));
  if (at < 0) return false;
  return (
    opening
      .slice(at + 1, at + 4)
      .some((word) => ["is", "are", "means", "refers", "denotes"].includes(word.text.toLowerCase())) ||
    /^[*_`]*[\w .-]{1,40}[*_`]*\s*[:—–]\s/.test(text)
  );
}

/** Assumed number of passages without any of the words: the hits alone do not show how rare a word is. */
const unseenPassages = 300;

/**
 * Statistics of all passages of the folder, from the line of a search result such as "Passages with each word, of 2310:
 * agent 412, kill 31". Without such a line it assumes that the found ones are a small part of the whole.
 */
export function corpusStatistics(
  keywords: Keywords,
  searches: readonly string[],
  matches: readonly Match[],
): Statistics {
  const guessed = statisticsOf(keywords, matches, matches.length + unseenPassages);
  const told = searches
    .map((text) => /^Passages with each word, of (\d{1,9}): (.*)$/m.exec(text))
    .filter((found) => found !== null);
  if (told.length === 0) return guessed;
  let passages = 0;
  const counts = new Map<string, number>();
  for (const [, total, list] of told) {
    passages += Number(total);
    for (const pair of (list ?? "").split(", ")) {
      const [, word, count] = /^(\S+) (\d{1,9})$/.exec(pair) ?? [];
      if (word !== undefined) counts.set(stemOf(word), (counts.get(stemOf(word)) ?? 0) + Number(count));
    }
  }
  const containing = keywords.words.map((word, index) => counts.get(word.stem) ?? guessed.containing[index] ?? 0);
  return { ...guessed, passages, containing };
}
