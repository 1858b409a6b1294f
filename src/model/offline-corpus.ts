import type { Keywords } from "./offline-keywords.ts";
import type { Match } from "./offline-matching.ts";
import { type Statistics, statisticsOf } from "./offline-ranking.ts";
import { stemOf } from "./offline-words.ts";

/** Hits were chosen for having the words, so their share says nothing of how rare a word is: so many others had none. */
const unseenPassages = 300;

/**
 * What is known of all the passages of which a few were found. A search tool may tell it, in a line as "Passages with
 * each word, of 2310: agent 412, kill 31"; without such a line the found ones are taken for a small part of the whole.
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
