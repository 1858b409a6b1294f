import { z } from "zod";
import { InvalidInputError } from "../errors/index.ts";
import { defineTool } from "../tools/index.ts";
import { toolNames } from "./document-model.ts";
import { readEach, searchFolder } from "./file-search.ts";
import { isProse, passagesOf } from "./passages.ts";
import { mostFiles, type TextFile, type TextFolder, textFolder } from "./text-folder.ts";

const mostListed = 100;
const mostLines = 400;
const maxLineLength = 2_000;
const defaultResults = 20;
const mostResults = 50;

/**
 * Tools that let an agent read the text files of one folder, and nothing else: `list`, `search`, `read`. They change
 * nothing (effect `none`). `root` may be relative to the working directory; it is opened at each call. `only` limits
 * them to these entries of the root, by name.
 */
export function fileTools(root: string, only?: readonly string[]) {
  const folder = textFolder(root, only);
  return { list: listTool(folder), search: searchTool(folder), read: readTool(folder) };
}

function listTool(folder: TextFolder) {
  return defineTool({
    name: toolNames.list,
    description:
      "Lists the text files of the folder: path, size, number of lines, first heading. Documents come before code.",
    parameters: z.object({
      pattern: z
        .string()
        .optional()
        .describe('Only paths that fit, such as "*.md", "guides/**" or a part of the path. Default: all.'),
    }),
    effect: "none",
    execute: async ({ pattern }, run) => {
      const all = await folder.files(run.signal);
      const fitting = pattern === undefined ? all : all.filter((path) => fitsPattern(path, pattern));
      const shown = await readEach(folder, fitting.slice(0, mostListed), run.signal);
      if (shown.length === 0) {
        return fitting.length > 0 || all.length === 0
          ? "There are no text files here."
          : `No path fits ${JSON.stringify(pattern)}; ${all.length} files do not.`;
      }
      const more = fitting.length - Math.min(fitting.length, mostListed);
      const atLeast = all.length >= mostFiles ? "at least " : "";
      const rest = more > 0 ? [`… and ${atLeast}${more} more files; give a pattern to see them.`] : [];
      return [...shown.map(describeFile), ...rest].join("\n");
    },
  });
}

function searchTool(folder: TextFolder) {
  return defineTool({
    name: toolNames.search,
    description:
      "Searches the text of all files, or of one, for words; no regular expressions. Gives the best passages, one a line, as path:line: text, with the headings it stands under in brackets. Put a fixed phrase in double quotes.",
    parameters: z.object({
      query: z.string().min(1).max(1_000).describe("The words to look for; word endings do not matter."),
      file: z.string().optional().describe("Path of the only file to search, as list_files shows it. Default: all."),
      maxResults: z
        .int()
        .min(1)
        .max(mostResults)
        .optional()
        .describe(`How many passages to give at most. Default: ${defaultResults}.`),
    }),
    effect: "none",
    execute: ({ query, file, maxResults = defaultResults }, run) =>
      searchFolder(folder, { query, file, maxResults }, run.signal),
  });
}

function readTool(folder: TextFolder) {
  return defineTool({
    name: toolNames.read,
    description: `Reads lines of a text file, each with its number; at most ${mostLines} lines a call.`,
    parameters: z.object({
      path: z.string().describe("Path of the file, as list_files shows it."),
      startLine: z.int().min(1).optional().describe("First line, counted from 1. Default: 1."),
      endLine: z.int().min(1).optional().describe("Last line, itself included. Default: as far as allowed."),
    }),
    effect: "none",
    execute: async ({ path, startLine = 1, endLine }, run) => {
      if (endLine !== undefined && endLine < startLine) {
        throw new InvalidInputError(`endLine ${endLine} lies before startLine ${startLine}.`);
      }
      return linesText(await folder.read(path, run.signal), startLine, endLine ?? Number.POSITIVE_INFINITY);
    },
  });
}

function describeFile(file: TextFile): string {
  const size = file.bytes < 1_000 ? `${file.bytes} B` : `${(file.bytes / 1_000).toFixed(1)} kB`;
  const lines = `${file.lines.length} ${file.lines.length === 1 ? "line" : "lines"}`;
  const heading = isProse(file.path)
    ? passagesOf(file.path, file.lines.slice(0, 60)).find((passage) => passage.kind === "heading")?.text
    : undefined;
  return `${file.path}  ${size}, ${lines}${heading === undefined ? "" : `  # ${heading.slice(0, 120)}`}`;
}

function linesText(file: TextFile, first: number, wantedLast: number): string {
  const total = file.lines.length;
  if (total === 0) return `${file.path} is empty.`;
  if (first > total) throw new InvalidInputError(`${file.path} has only ${total} lines; startLine was ${first}.`);
  const last = Math.min(total, wantedLast, first + mostLines - 1);
  const before = isProse(file.path) ? passagesOf(file.path, file.lines.slice(0, first - 1)).at(-1) : undefined;
  const headings = before?.kind === "heading" ? [...before.headings, before.text] : (before?.headings ?? []);
  const under = headings.length === 0 ? "" : `, under: ${headings.join(" > ")}`;
  const lines = file.lines
    .slice(first - 1, last)
    .map((text, index) => `${first + index}: ${text.replace(/^\uFEFF/, "").slice(0, maxLineLength)}`);
  return [`${file.path}, lines ${first}-${last} of ${total}${under}`, ...lines].join("\n");
}

const maxPatternLength = 200;

/**
 * True if a path fits a pattern: `*` and `?` within a name, `**` over folders (`docs/**`, `*.md`). A pattern without a
 * slash is tried on the file's name; one without a wildcard fits every path that contains it. Letter case is ignored.
 * Matched without a regular expression, so that no pattern can take long.
 */
export function fitsPattern(path: string, pattern: string): boolean {
  const wanted = pattern.trim().slice(0, maxPatternLength).toLowerCase().replace(/^\.\//, "");
  const given = path.toLowerCase();
  if (wanted === "" || wanted === "**") return true;
  if (!/[*?]/.test(wanted)) return given.includes(wanted);
  const names = given.split("/");
  if (!wanted.includes("/")) return fitsName(names.at(-1) ?? "", wanted);
  return fitsSequence(names, wanted.split("/"), fitsName, "**");
}

function fitsName(name: string, pattern: string): boolean {
  return fitsSequence(
    Array.from(name),
    Array.from(pattern),
    (character, wanted) => wanted === "?" || wanted === character,
    "*",
  );
}

/** Wildcard matching with one step back to the last `any`: time is at most the product of both lengths. */
function fitsSequence(
  items: readonly string[],
  pattern: readonly string[],
  fits: (item: string, wanted: string) => boolean,
  any: string,
): boolean {
  let item = 0;
  let place = 0;
  let retryItem = 0;
  let retryPlace = -1;
  while (item < items.length) {
    const wanted = pattern[place];
    if (wanted === any) {
      retryPlace = place;
      retryItem = item;
      place += 1;
    } else if (wanted !== undefined && fits(items[item] ?? "", wanted)) {
      item += 1;
      place += 1;
    } else if (retryPlace >= 0) {
      retryItem += 1;
      item = retryItem;
      place = retryPlace + 1;
    } else return false;
  }
  while (pattern[place] === any) place += 1;
  return place === pattern.length;
}
