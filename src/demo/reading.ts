import type { ToolResult } from "../model/index.ts";
import type { Candidate, Finding } from "./evidence.ts";
import type { Keywords } from "./keywords.ts";
import { speaksTo, surroundingsOf } from "./matching.ts";
import {
  type NumberedLine,
  isProse,
  linePassages,
  type Above,
  type Passage,
  type PassageKind,
  passagesOf,
} from "./passages.ts";

/** Lines of a file to be read, both ends included. */
interface LineRange {
  readonly path: string;
  readonly first: number;
  readonly last: number;
}

const linesBefore = 3;
const linesAfter = 9;
const maxRanges = 4;
const maxRangeLength = 60;
const maxFollowers = 4;
/** Prose makes statements; rows and code less so. */
const trustIn: Readonly<Record<PassageKind, number>> = { prose: 1, item: 1, row: 0.8, code: 0.6, heading: 0 };
const maxStatementLength = 600;

/** The lines to read around the search hits, best first; near ones are merged. */
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

/** All that was read or found, as passages with their surroundings. Read passages come first, because they are whole. */
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
  const given = read.arguments["path"];
  const path = typeof given === "string" ? given : file;
  if (path === undefined) return [];
  const start = read.arguments["startLine"];
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

/** The context from the header of a read result: "…, in code, under: Budgets > Accounts". */
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

const findingLine = /^\s*(?:[-*]\s+)?([^\s:][^:\n]{0,400}):(\d{1,9}):\s+(\S.*)$/u;

/** The lines of a result that have the form `path:line: text`, or `path:line: text [under: A > B]`; all else is left out. */
export function findingsIn(text: string): Finding[] {
  const findings: Finding[] = [];
  for (const line of text.split("\n")) {
    const [, path, number, statement] = findingLine.exec(line) ?? [];
    if (path === undefined || number === undefined || statement === undefined) continue;
    const under = statement.endsWith("]") ? statement.lastIndexOf("[under: ") : -1;
    const text = (under < 0 ? statement : statement.slice(0, under)).trim();
    const headings = under < 0 ? [] : statement.slice(under + "[under: ".length, -1).split(" > ");
    findings.push({ path, line: Number(number), text, headings });
  }
  return findings;
}

/** One file of a listing; `about` is all that the listing says of it. */
export interface ListedFile {
  readonly path: string;
  readonly about: string;
}

/** The files of a listing: a JSON array of names or of objects with a path, or one line per file that begins with its path. */
export function filesIn(text: string): ListedFile[] {
  const array = parseArray(text);
  if (array !== undefined) return array.flatMap(fileOfEntry);
  return text.split("\n").flatMap((line) => {
    const match = /^\s*(?:[-*]\s+)?(\S(?:[^\t]*?\S)?)(?:\t|\s{2,}|\s[-–(]|$)/u.exec(line.slice(0, 1_000));
    const path = match?.[1];
    return path !== undefined && looksLikePath(path) ? [{ path, about: line.trim() }] : [];
  });
}

function fileOfEntry(entry: unknown): ListedFile[] {
  if (typeof entry === "string") return [{ path: entry, about: entry }];
  if (typeof entry !== "object" || entry === null) return [];
  const path = ["path", "file", "name"].flatMap((key) => {
    const value: unknown = Reflect.get(entry, key);
    return typeof value === "string" ? [value] : [];
  })[0];
  return path === undefined ? [] : [{ path, about: Object.values(entry).join(" ") }];
}

function looksLikePath(text: string): boolean {
  return /^[^\s].*\.[\w-]{1,12}$/u.test(text) || (text.includes("/") && !/\s/.test(text));
}

function parseArray(text: string): unknown[] | undefined {
  if (!text.trimStart().startsWith("[")) return undefined;
  try {
    const value: unknown = JSON.parse(text);
    return Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** The result of a read: numbered lines, and the unnumbered ones, which describe them. */
interface ReadText {
  readonly lines: readonly NumberedLine[];
  readonly about: readonly string[];
}

/** Reads line-numbered text (`12: …`, `12 | …`, `12<tab>…`); text without numbers is counted from `firstLine`. */
export function readTextIn(text: string, firstLine: number): ReadText {
  const lines = text.split("\n");
  const numbered = lines.map((line) => /^\s*(\d{1,9})(?:\t|: ?| ?[|│] ?)(.*)$/u.exec(line));
  const count = numbered.filter((match) => match !== null).length;
  if (count === 0 || count < lines.length / 2)
    return { lines: lines.map((line, index) => ({ line: firstLine + index, text: line })), about: [] };
  return {
    lines: numbered.flatMap((match) => (match === null ? [] : [{ line: Number(match[1]), text: match[2] ?? "" }])),
    about: lines.filter((line, index) => numbered[index] === null && line.trim() !== ""),
  };
}
