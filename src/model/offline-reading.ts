import type { Candidate } from "./offline-evidence.ts";
import type { Keywords } from "./offline-keywords.ts";
import { type Finding, findingsIn, readTextIn } from "./offline-listing.ts";
import { speaksTo, surroundingsOf } from "./offline-matching.ts";
import type { ToolResult } from "./offline-request.ts";
import { isProse, linePassages, type Above, type Passage, type PassageKind, passagesOf } from "./offline-sentences.ts";
import { fileParameter, firstLineParameter } from "./offline-tools.ts";

/** Lines of a file to be read, both ends included. */
export interface LineRange {
  readonly path: string;
  readonly first: number;
  readonly last: number;
}

const linesBefore = 3;
const linesAfter = 9;
const maxRanges = 4;
const maxRangeLength = 60;
const maxFollowers = 4;
/** Prose states, rows and code show. */
const trustIn: Readonly<Record<PassageKind, number>> = { prose: 1, item: 1, row: 0.8, code: 0.6, heading: 0 };
const maxStatementLength = 600;

/** Where to read on: around the search hits, best first, what lies near together in one piece. */
export function rangesAround(keywords: Keywords, hits: readonly Finding[]): LineRange[] {
  const ranges: LineRange[] = [];
  const relevant = hits.filter((hit) => speaksTo(keywords, hit.text, surroundingsOf(hit.path, hit.headings)));
  for (const hit of relevant.length > 0 ? relevant : hits.slice(0, maxRanges)) {
    const wanted = { path: hit.path, first: Math.max(1, hit.line - linesBefore), last: hit.line + linesAfter };
    const near = ranges.findIndex(
      (range) => range.path === wanted.path && wanted.first <= range.last + 3 && wanted.last >= range.first - 3,
    );
    const known = ranges[near];
    if (known !== undefined) {
      const merged = {
        path: known.path,
        first: Math.min(known.first, wanted.first),
        last: Math.max(known.last, wanted.last),
      };
      if (merged.last - merged.first <= maxRangeLength) ranges[near] = merged;
    } else if (ranges.length < maxRanges) ranges.push(wanted);
  }
  return ranges.sort((left, right) => left.path.localeCompare(right.path, "en") || left.first - right.first);
}

/** All that was read or hit, as passages with their surroundings. What was read comes first: it is whole. */
export function candidatesIn(
  reads: readonly ToolResult[],
  searches: readonly ToolResult[],
  file: string | undefined,
): Candidate[] {
  const candidates = new Map<string, Candidate>();
  const add = (candidate: Candidate): void => {
    const key = `${candidate.path}:${candidate.line}:${candidate.text.slice(0, 40)}`;
    if (!candidates.has(key)) candidates.set(key, candidate);
  };
  for (const read of reads) candidatesOfRead(read, file).forEach(add);
  for (const search of searches) {
    for (const hit of findingsIn(search.text)) {
      if (/^#{1,6}\s|…$/u.test(hit.text) || (file !== undefined && hit.path !== file)) continue;
      add({
        ...hit,
        surroundings: surroundingsOf(hit.path, hit.headings),
        opensSection: false,
        followers: [],
        trust: 0.9,
        isVouchedFor: false,
      });
    }
  }
  return [...candidates.values()];
}

function candidatesOfRead(read: ToolResult, file: string | undefined): Candidate[] {
  const path = textArgument(read, fileParameter) ?? file;
  if (path === undefined) return [];
  const start = Object.entries(read.arguments).find(([name]) => firstLineParameter.test(name))?.[1];
  const { lines, about } = readTextIn(read.text, typeof start === "number" ? start : 1);
  const passages = isProse(path) ? passagesOf(lines, aboveIn(about)) : linePassages(lines);
  return passages.flatMap((passage, index) => {
    if (passage.kind === "heading" || passage.mayBeCut) return [];
    const text = shortened(passage.text);
    const followers = followersOf(passage, passages.slice(index + 1, index + 1 + maxFollowers), path);
    return [
      {
        path,
        line: passage.line,
        text,
        headings: passage.headings,
        surroundings: surroundingsOf(path, passage.headings),
        opensSection: passage.opensSection,
        followers,
        trust: trustIn[passage.kind],
        isVouchedFor: false,
      },
    ];
  });
}

/** The items, rows or code that a passage announces with a colon. */
function followersOf(passage: Passage, next: readonly Passage[], path: string): Finding[] {
  if (!/:[*_`]*$/u.test(passage.text)) return [];
  const end = next.findIndex(
    (other, index) =>
      other.mayBeCut ||
      other.kind === "prose" ||
      other.kind === "heading" ||
      (index > 0 && other.kind !== next[0]?.kind),
  );
  return next
    .slice(0, end < 0 ? next.length : end)
    .map((other) => ({ path, line: other.line, text: shortened(other.text), headings: other.headings }));
}

/** What a read tool says of the lines: "…, in code, under: Budgets > Accounts". */
function aboveIn(about: readonly string[]): Above {
  const line = about.find((text) => /\blines? \d/u.test(text)) ?? "";
  const under = /\bunder:\s+(\S.*)$/u.exec(line)?.[1] ?? "";
  const headings = under === "" ? [] : under.split(" > ").map((heading) => heading.trim());
  return { headings, isInsideCode: /, in code\b/.test(line) ? true : undefined };
}

function shortened(text: string): string {
  if (text.length <= maxStatementLength) return text;
  return `${text.slice(0, text.lastIndexOf(" ", maxStatementLength) > 0 ? text.lastIndexOf(" ", maxStatementLength) : maxStatementLength)} …`;
}

function textArgument(result: ToolResult, name: RegExp): string | undefined {
  const value = Object.entries(result.arguments).find(([key]) => name.test(key))?.[1];
  return typeof value === "string" ? value : undefined;
}
