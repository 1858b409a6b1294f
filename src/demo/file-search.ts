import { type Keywords, keywordsOf } from "./keywords.ts";
import {
  isRelevant,
  type Match,
  matchPassage,
  type Statistics,
  scoreMatch,
  statisticsOf,
  surroundingsOf,
} from "./matching.ts";
import { isProse, linePassages, type NumberedLine, type Passage, passagesOf } from "./passages.ts";
import type { TextFile, TextFolder } from "./text-folder.ts";

interface SearchRequest {
  readonly query: string;
  /** Only this file; absent: all. */
  readonly file?: string | undefined;
  readonly maxResults: number;
}

interface Hit {
  readonly path: string;
  readonly passage: Passage;
  readonly match: Match;
  readonly weight: number;
}

const maxTotalBytes = 32_000_000;
const maxCodeLineLength = 1_000;
const maxShownLength = 400;
const mostHeadings = 2;
const maxHeadingLength = 80;
/** Code repeats the words of a question without answering it: documents go first. */
const codeWeight = 0.2;
const unlikelyWeight = 0.5;
const readAtATime = 8;

/** Searches the passages of a folder's files for the words of a query and writes the best, one a line, as `path:line: text [under: heading]`. */
export async function searchFolder(folder: TextFolder, request: SearchRequest, signal: AbortSignal): Promise<string> {
  const keywords = keywordsOf(request.query);
  const wanted = keywords.words.map((word) => word.text).join(", ");
  if (wanted === "") return "The query has no word to search for: give the words that the text would use.";
  const paths = request.file === undefined ? await folder.files(signal) : [];
  const given = request.file === undefined ? undefined : await folder.read(request.file, signal);
  const hits: Hit[] = [];
  let passages = 0;
  let bytes = 0;
  let files = 0;
  for (let at = 0; at < (given === undefined ? paths.length : 1) && bytes < maxTotalBytes; at += readAtATime) {
    const read =
      given === undefined
        ? await Promise.all(paths.slice(at, at + readAtATime).map((path) => folder.tryRead(path, signal)))
        : [given];
    for (const file of read) {
      if (file === undefined) continue;
      files += 1;
      bytes += file.bytes;
      const found = hitsIn(keywords, file);
      passages += found.passages;
      for (const hit of found.hits) hits.push(hit);
    }
  }
  const cut = bytes >= maxTotalBytes ? " The folder is large: only a part of it was searched." : "";
  const where = given === undefined ? `${files} ${files === 1 ? "file" : "files"}` : given.path;
  if (hits.length === 0) return `No passage in ${where} has any of: ${wanted}.${cut}`;
  const statistics = statisticsOf(
    keywords,
    hits.map((hit) => hit.match),
    passages,
  );
  const best = bestOf(keywords, hits, statistics, request);
  const sources = new Set(hits.map((hit) => hit.path)).size;
  const head = `${best.length} of ${hits.length} passages in ${given === undefined ? `${sources} of ${where}` : where}, best first.${cut}`;
  const counts = keywords.words.map((word, index) => `${word.text} ${statistics.containing[index] ?? 0}`);
  const words = `Passages with each word, of ${statistics.passages}: ${counts.join(", ")}`;
  return [head, words, ...best.map(hitLine)].join("\n");
}

function hitsIn(keywords: Keywords, file: TextFile): { hits: Hit[]; passages: number } {
  const prose = isProse(file.path);
  const lines = numbered(file.lines).filter((line) => prose || line.text.length <= maxCodeLineLength);
  const passages = prose ? passagesOf(lines) : linePassages(lines);
  const hits = passages.flatMap((passage): Hit[] => {
    const match = matchPassage(keywords, passage.text, surroundingsOf(file.path, passage.headings));
    if (match === undefined || !(passage.opensSection || match.own.some((count) => count > 0))) return [];
    const likely = isRelevant(keywords, match) ? 1 : unlikelyWeight;
    return [{ path: file.path, passage, match, weight: likely * (prose ? 1 : codeWeight) }];
  });
  return { hits, passages: passages.length };
}

function bestOf(keywords: Keywords, hits: readonly Hit[], statistics: Statistics, request: SearchRequest): Hit[] {
  const ranked = hits
    .map((hit) => ({ hit, score: scoreMatch(keywords, hit.match, statistics) * hit.weight }))
    .sort((left, right) => right.score - left.score || left.hit.passage.line - right.hit.passage.line);
  const mostPerFile = request.file === undefined ? Math.max(3, Math.ceil(request.maxResults / 8)) : request.maxResults;
  const perFile = new Map<string, number>();
  const best: Hit[] = [];
  for (const { hit } of ranked) {
    const count = perFile.get(hit.path) ?? 0;
    if (count >= mostPerFile) continue;
    perFile.set(hit.path, count + 1);
    best.push(hit);
    if (best.length >= request.maxResults) break;
  }
  return best;
}

function hitLine({ path, passage }: Hit): string {
  const mark = passage.kind === "heading" ? `${"#".repeat(passage.headings.length + 1)} ` : "";
  const text = passage.text.replace(/\s+/gu, " ");
  const shown = text.length > maxShownLength ? `${text.slice(0, maxShownLength)} …` : text;
  const under = passage.headings.slice(-mostHeadings).map((heading) => heading.slice(0, maxHeadingLength));
  return `${path}:${passage.line}: ${mark}${shown}${under.length === 0 ? "" : ` [under: ${under.join(" > ")}]`}`;
}

export function numbered(lines: readonly string[]): NumberedLine[] {
  return lines.map((text, index) => ({ line: index + 1, text }));
}
