import MiniSearch from "minisearch";
import { isStopWord, stemOf, wordsOf } from "../model/index.ts";
import { isProse, type Passage, passagesOf } from "./passages.ts";
import type { TextFile, TextFolder } from "./text-folder.ts";

interface SearchRequest {
  readonly query: string;
  /** The only file to search; undefined: all. */
  readonly file: string | undefined;
  readonly maxResults: number;
}

interface Entry extends Passage {
  readonly id: number;
  readonly path: string;
}

const readAtATime = 8;
const maxShownLength = 600;
const weights = { prose: 1, item: 1, row: 0.9, heading: 0.5, code: 0.4 } satisfies Record<Passage["kind"], number>;
const codeFileWeight = 0.3;

/** Words that say little on their own. */
const weak: ReadonlySet<string> = new Set(
  "actually become behave case detail different document example file folder get happen help kind make mean project possible sure thing try typical use usual want work"
    .split(" ")
    .map(stemOf),
);

/** The stems of the words of a text that carry its subject, each once, with the word as written. */
export function termsOf(text: string): ReadonlyMap<string, string> {
  const words = wordsOf(text).filter(
    (word) => !isStopWord(word.text.toLowerCase()) && (word.text.length > 1 || /\d/.test(word.text)),
  );
  const strong = words.filter((word) => !weak.has(word.stem));
  return new Map((strong.length > 0 ? strong : words).map((word) => [word.stem, word.text]));
}

/** The stems in a text, those of the parts of compounds too. */
export function stemsIn(text: string): ReadonlySet<string> {
  return new Set(tokensOf(text));
}

function tokensOf(text: string): string[] {
  return wordsOf(text).flatMap((word) => [word.stem, ...word.parts]);
}

export function phrasesIn(query: string): string[] {
  return [...query.matchAll(/["“]([^"“”\n]{1,200})["”]/gu)].map(([, phrase = ""]) => phrase.toLowerCase().trim());
}

/** The best passages for the words of a query, by BM25 over passage and headings: one a line, as `path:line: text [under: …]`. */
export async function searchFolder(
  folder: TextFolder,
  { query, file, maxResults }: SearchRequest,
  signal: AbortSignal,
): Promise<string> {
  const terms = termsOf(query);
  if (terms.size === 0) return `The query has no word to search for: give words that the text would use.`;
  const files =
    file === undefined ? await readEach(folder, await folder.files(signal), signal) : [await folder.read(file, signal)];
  const entries = files
    .flatMap(({ path, lines }) => passagesOf(path, lines).map((passage) => ({ ...passage, path })))
    .map((entry, id): Entry => ({ ...entry, id }));
  const index = new MiniSearch<Entry>({
    fields: ["text", "headings"],
    extractField: (entry, field) => (field === "headings" ? entry.headings.join("\n") : entry[field as "text"]),
    tokenize: tokensOf,
    processTerm: (term) => term,
  });
  index.addAll(entries);
  const phrases = phrasesIn(query);
  const hits = index
    .search([...terms.keys()].join(" "), {
      boost: { text: 3 },
      tokenize: (text) => text.split(" "),
      boostDocument: (id) => weightOf(entries[Number(id)]),
      filter: ({ id }) => phrases.every((phrase) => entries[Number(id)]?.text.toLowerCase().includes(phrase) === true),
    })
    .map(({ id, score, queryTerms }) => ({ entry: entries[Number(id)], score: score * queryTerms.length }))
    .sort((one, other) => other.score - one.score);
  const shown = hits.slice(0, maxResults).flatMap(({ entry }) => (entry === undefined ? [] : [hitLine(entry)]));
  if (shown.length === 0) {
    return `No passage in ${file ?? `${files.length} files`} has any of: ${[...phrases, ...terms.values()].join(", ")}.`;
  }
  return [`${shown.length} of ${hits.length} passages, best first.`, ...shown].join("\n");
}

function weightOf(entry: Entry | undefined): number {
  if (entry === undefined) return 0;
  return weights[entry.kind] * (isProse(entry.path) ? 1 : codeFileWeight) * (entry.text.endsWith("?") ? 0.5 : 1);
}

function hitLine({ path, line, text, kind, headings }: Entry): string {
  const mark = kind === "heading" ? `${"#".repeat(Math.min(6, headings.length + 1))} ` : "";
  const shown = text.length > maxShownLength ? `${text.slice(0, maxShownLength)} …` : text;
  const under = headings.slice(-3).map((heading) => heading.slice(0, 100));
  return `${path}:${line}: ${mark}${shown}${under.length === 0 ? "" : ` [under: ${under.join(" > ")}]`}`;
}

export async function readEach(folder: TextFolder, paths: readonly string[], signal: AbortSignal): Promise<TextFile[]> {
  const files: TextFile[] = [];
  for (let at = 0; at < paths.length; at += readAtATime) {
    const read = await Promise.all(paths.slice(at, at + readAtATime).map((path) => folder.tryRead(path, signal)));
    files.push(...read.filter((file) => file !== undefined));
  }
  return files;
}
