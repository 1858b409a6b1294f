import type { Passage } from "./offline-passages.ts";
import { stemsIn } from "./offline-words.ts";

/** Passages with some of the terms, the best first: by BM25 over text and headings, and by how many terms they have. */
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
    // Other words count for the length of a passage, and need no place in the index.
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

/** How many of the terms a text lacks to speak to a question: half of them, and two of them, will do. */
export function missingTerms(terms: ReadonlyMap<string, unknown>, text: string): number {
  const stems = new Set(stemsIn(text));
  const found = [...terms.keys()].filter((stem) => stems.has(stem)).length;
  if (found === 0) return terms.size === 0 ? 1 : Number.POSITIVE_INFINITY;
  return Math.max(Math.min(2, terms.size), Math.ceil(terms.size / 2)) - found;
}
