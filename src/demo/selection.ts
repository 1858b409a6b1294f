import { corpusStatistics } from "./evidence.ts";
import type { Keywords } from "./keywords.ts";
import { isPresent, matchPassage, speaksTo, surroundingsOf, scoreMatch } from "./matching.ts";
import { isProse } from "./passages.ts";
import { findingsIn, type ListedFile } from "./reading.ts";

const leastShareOfBest = 0.2;
const filesWithoutRelevantHit = 2;
/** Code repeats the words of a question without answering it: documents go first. */
const codeWeight = 0.2;

/** The searches and listings of a lead. */
interface SeenFiles {
  /** Results of searches. */
  readonly searches: readonly string[];
  readonly listed: readonly ListedFile[];
}

/** The files worth reading for a question, best first: by their search hits, and by what the listing says of them. */
export function selectFiles(keywords: Keywords, seen: SeenFiles, most: number): string[] {
  if (keywords.parts.length === 0) return selectForPart(keywords, seen).slice(0, most);
  const parts = keywords.parts.map((part) => selectForPart(part, seen));
  const longest = Math.max(...parts.map((files) => files.length));
  const inTurns = Array.from({ length: longest }, (_, place) =>
    parts.flatMap((files) => files.slice(place, place + 1)),
  );
  return [...new Set(inTurns.flat())].slice(0, most);
}

function selectForPart(keywords: Keywords, seen: SeenFiles): string[] {
  const { listed } = seen;
  const descriptions = new Map(listed.map((file) => [file.path, file.about]));
  const matches = seen.searches.flatMap(findingsIn).flatMap((hit) => {
    const surroundings = surroundingsOf(hit.path, [descriptions.get(hit.path) ?? "", ...hit.headings]);
    const match = matchPassage(keywords, hit.text, surroundings);
    return match === undefined ? [] : [{ hit, match, isRelevant: speaksTo(keywords, hit.text, surroundings) }];
  });
  const statistics = corpusStatistics(
    keywords,
    seen.searches,
    matches.map(({ match }) => match),
  );
  const files = new Map<string, { score: number; hits: number; isRelevant: boolean; covered: Set<number> }>();
  for (const { hit, match, isRelevant } of matches) {
    const file = files.get(hit.path) ?? { score: 0, hits: 0, isRelevant: false, covered: new Set<number>() };
    file.score += scoreMatch(keywords, match, statistics) / (1 + file.hits);
    file.hits += 1;
    file.isRelevant ||= isRelevant;
    match.own.forEach((count, index) => {
      if (isPresent(count)) file.covered.add(index);
    });
    files.set(hit.path, file);
  }
  for (const { path, about } of listed) {
    const match = matchPassage(keywords, about);
    const file = files.get(path);
    if (match === undefined || (file === undefined && !speaksTo(keywords, about))) continue;
    const score = scoreMatch(keywords, match, statistics) / 2;
    files.set(
      path,
      file === undefined
        ? { score, hits: 0, isRelevant: true, covered: new Set() }
        : { ...file, score: file.score + score },
    );
  }
  const ranked = [...files]
    .map(([path, file]) => ({
      path,
      isRelevant: file.isRelevant,
      score:
        (isProse(path) ? 1 : codeWeight) * file.score * (0.5 + file.covered.size / Math.max(1, keywords.words.length)),
    }))
    .sort((left, right) => right.score - left.score || left.path.localeCompare(right.path, "en"));
  const relevant = ranked.filter((file) => file.isRelevant);
  const chosen = relevant.length > 0 ? relevant : ranked.slice(0, filesWithoutRelevantHit);
  const best = chosen[0]?.score ?? 0;
  return chosen.filter((file) => file.score >= best * leastShareOfBest).map((file) => file.path);
}
