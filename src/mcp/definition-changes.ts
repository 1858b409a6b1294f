import { type Path, renderPath } from "../base/index.ts";
import type { Json } from "../state/index.ts";
import { hashOfTool, type PinnedTool, pinnedParts } from "./pinned-tool.ts";

/** A tool whose definition at the server is not the pinned one. */
export interface ToolChange {
  /** What happened since the tool was pinned. */
  readonly kind: "added" | "removed" | "changed";
  /** The server's name for the tool. */
  readonly name: string;
  /** The parts that differ, such as `description` and `inputSchema`; none of a tool that was added or removed. */
  readonly parts: readonly string[];
  /** The lines that differ, each with `- ` or `+ ` in front: printable, and limited in number and length. */
  readonly lines: readonly string[];
}

/** Lines of one tool, and characters of one line, that are shown. */
const MOST_LINES = 40;
const LONGEST_LINE = 200;
/** Names of tools in a warning. */
const MOST_NAMES = 20;
/** Characters in front of the first difference that are shown of a long line. */
const LEAD = 40;

/** Compares the definitions of a server with the pinned ones; sorted by name. */
export function changesOf(pinned: readonly PinnedTool[], live: readonly PinnedTool[]): readonly ToolChange[] {
  const before = new Map(pinned.map((tool) => [tool.name, tool]));
  const after = new Map(live.map((tool) => [tool.name, tool]));
  const names = [...new Set([...before.keys(), ...after.keys()])].toSorted((one, other) => (one < other ? -1 : 1));
  return names.flatMap((name) => changeOf(name, before.get(name), after.get(name)) ?? []);
}

function changeOf(name: string, before: PinnedTool | undefined, after: PinnedTool | undefined): ToolChange | undefined {
  if (after === undefined) return { kind: "removed", name, parts: [], lines: [] };
  if (before !== undefined && hashOfTool(before) === hashOfTool(after)) return undefined;
  const lines = [...descriptionLines(before, after), ...valueLines(before, after)];
  if (before === undefined) return { kind: "added", name, parts: [], lines: shownLines(lines) };
  const parts = pinnedParts.filter((part) => lines.some(({ label }) => label.startsWith(part)));
  return { kind: "changed", name, parts, lines: shownLines(lines) };
}

interface DifferentLine {
  readonly mark: "-" | "+";
  readonly label: string;
  readonly text: string;
}

function descriptionLines(before: PinnedTool | undefined, after: PinnedTool): DifferentLine[] {
  const [old, now] = [before?.description, after.description];
  if (old === now) return [];
  const [oldLines, newLines] = [old?.split("\n") ?? [], now?.split("\n") ?? []];
  const removed = oldLines.filter((line) => !newLines.includes(line));
  const added = newLines.filter((line) => !oldLines.includes(line));
  // Lines may only have been moved or repeated.
  const isSame = removed.length === 0 && added.length === 0;
  return different("description", isSame ? [oldLines, newLines] : [removed, added]);
}

function different(label: string, [removed, added]: readonly [readonly string[], readonly string[]]): DifferentLine[] {
  const [old, now] = [removed[0], added[0]];
  if (old !== undefined && now !== undefined && removed.length === 1 && added.length === 1) {
    const start = startOfDifference(old, now);
    return [
      { mark: "-", label, text: from(old, start) },
      { mark: "+", label, text: from(now, start) },
    ];
  }
  return [
    ...removed.map((text): DifferentLine => ({ mark: "-", label, text })),
    ...added.map((text): DifferentLine => ({ mark: "+", label, text })),
  ];
}

/** Where to begin two long lines, so that their first difference is shown. */
function startOfDifference(one: string, other: string): number {
  if (Math.max(one.length, other.length) <= LONGEST_LINE) return 0;
  let same = 0;
  while (same < one.length && one[same] === other[same]) same += 1;
  return Math.max(0, same - LEAD);
}

function from(text: string, start: number): string {
  return start === 0 ? text : `…${text.slice(start).toWellFormed()}`;
}

function valueLines(before: PinnedTool | undefined, after: PinnedTool): DifferentLine[] {
  const lines: DifferentLine[] = [];
  for (const part of pinnedParts) {
    if (part === "description") continue;
    const [old, now] = [leavesOf(part, before?.[part]), leavesOf(part, after[part])];
    for (const path of new Set([...old.keys(), ...now.keys()])) {
      const [one, other] = [old.get(path), now.get(path)];
      if (one === other) continue;
      lines.push(...different(path, [one === undefined ? [] : [one], other === undefined ? [] : [other]]));
    }
  }
  return lines;
}

/** The values without members, as JSON, by their paths. A list of such values is one. */
function leavesOf(part: string, value: Json | undefined): Map<string, string> {
  const leaves = new Map<string, string>();
  const visit = (path: Path, json: Json): void => {
    const members = membersOf(json);
    if (members.length === 0) leaves.set(pathText(path, leaves), JSON.stringify(json));
    for (const [key, member] of members) visit([...path, key], member);
  };
  if (value !== undefined) visit([part], value);
  return leaves;
}

function membersOf(json: Json): [string | number, Json][] {
  if (typeof json !== "object" || json === null) return [];
  if (!Array.isArray(json)) return Object.entries(json);
  const list = json as readonly Json[];
  const isFlat = list.every((member) => typeof member !== "object" || member === null);
  return isFlat ? [] : list.map((member, index) => [index, member]);
}

/** Long paths are cut; every path must stay different from the others. */
function pathText(path: Path, known: ReadonlyMap<string, string>): string {
  const text = renderPath(path);
  return known.has(text) ? `${text} (${known.size})` : text;
}

function shownLines(lines: readonly DifferentLine[]): string[] {
  const shown = lines.slice(0, MOST_LINES).map(({ mark, label, text }) => {
    return `${mark} ${printable(label, LONGEST_LINE)}: ${printable(text, LONGEST_LINE)}`;
  });
  const left = lines.length - shown.length;
  return left === 0 ? shown : [...shown, `… and ${left} more lines`];
}

/** Characters that cannot be seen, that reorder others, or that hide text from readers but not from models. */
const unprintable = /\p{C}|\p{Zl}|\p{Zp}|\p{Default_Ignorable_Code_Point}|(?! )\p{Zs}/gu;

/** The text on one line, at most `longest` characters long, with the code points of characters that cannot be seen. */
export function printable(text: string, longest: number): string {
  const cut = text.length > longest ? `${text.slice(0, longest).toWellFormed()}…` : text;
  return cut.replaceAll(unprintable, (character) => `\\u{${(character.codePointAt(0) ?? 0).toString(16)}}`);
}

/** JSON in which characters that cannot be seen are escaped; line breaks between values stay. */
export function visibleJson(json: string): string {
  return json.replaceAll(unprintable, (character) =>
    character === "\n"
      ? character
      : Array.from({ length: character.length }, (_, index) => {
          return `\\u${character.charCodeAt(index).toString(16).padStart(4, "0")}`;
        }).join(""),
  );
}

/** Names of tools for a warning. */
export function namesText(names: readonly string[]): string {
  const shown = names.slice(0, MOST_NAMES).map(shownName).join(", ");
  return names.length > MOST_NAMES ? `${shown} and ${names.length - MOST_NAMES} more` : shown;
}

/** The name of a tool, printable. */
export function shownName(name: string): string {
  return printable(JSON.stringify(name), 100);
}
