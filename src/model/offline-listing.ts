import type { NumberedLine } from "./offline-sentence-split.ts";

/** A statement with its place, as `path:line: text`, and where a search tells them the headings above it. */
export interface Finding {
  readonly path: string;
  readonly line: number;
  readonly text: string;
  /** Outermost first. */
  readonly headings: readonly string[];
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

/** What a read tool gave: numbered lines, and the unnumbered ones, which speak about them. */
export interface ReadText {
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
