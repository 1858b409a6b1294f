import { z } from "zod";
import { InvalidInputError } from "../errors/index.ts";
import { isProse, type Passage, passagesOf, rank, termsOf } from "../model/index.ts";
import { defineTool } from "../tools/index.ts";
import { toolNames } from "./document-model.ts";
import { type TextFile, TextFolder } from "./text-folder.ts";

const mostListed = 100;
const mostLines = 400;
const maxLineLength = 2_000;
const maxShownLength = 600;
const weights = { prose: 1, item: 1, row: 0.9, heading: 0.5, code: 0.4 } satisfies Record<Passage["kind"], number>;
const codeFileWeight = 0.3;

interface Entry extends Passage {
  readonly path: string;
}

/**
 * Tools that let an agent read the text files of one folder, and nothing else: `list`, `search`, `read`. They change
 * nothing (effect `none`). `root` may be relative to the working directory; it is opened at each call. `only` limits
 * them to these entries of the root, by name.
 */
export function fileTools(root: string, only?: readonly string[]) {
  const folder = new TextFolder(root, only);
  const list = defineTool({
    name: toolNames.list,
    description:
      "Lists the text files of the folder: path, size, number of lines, first heading. Documents come before code.",
    parameters: z.object({
      part: z.string().optional().describe("Only paths that contain this text. Default: all."),
    }),
    effect: "none",
    execute: async ({ part = "" }, { signal }) => {
      const all = await folder.files(signal);
      const fitting = all.filter((path) => path.toLowerCase().includes(part.toLowerCase()));
      if (fitting.length === 0 && all.length > 0)
        return `No path contains ${JSON.stringify(part)}; ${all.length} files do not.`;
      const shown = await folder.readEach(fitting.slice(0, mostListed), signal);
      if (shown.length === 0) return "There are no text files here.";
      const more = fitting.length - mostListed;
      const rest = more > 0 ? [`… and ${more} more files; give a part of their paths to see them.`] : [];
      return [...shown.map(describeFile), ...rest].join("\n");
    },
  });
  const search = defineTool({
    name: toolNames.search,
    description:
      "Searches the text of all files, or of one, for words; no regular expressions. Gives the best passages, one a line, as path:line: text, with the headings it stands under in brackets. Put a fixed phrase in double quotes.",
    parameters: z.object({
      query: z.string().min(1).max(1_000).describe("The words to look for; word endings do not matter."),
      file: z.string().optional().describe("Path of the only file to search, as list_files shows it. Default: all."),
      maxResults: z.int().min(1).max(50).optional().describe("How many passages to give at most. Default: 20."),
    }),
    effect: "none",
    execute: async ({ query, file, maxResults = 20 }, { signal }) => {
      const terms = termsOf(query);
      if (terms.size === 0) return "The query has no word to search for: give words that the text would use.";
      const files =
        file === undefined
          ? await folder.readEach(await folder.files(signal), signal)
          : [await folder.read(file, signal)];
      const phrases = Array.from(query.matchAll(/["“]([^"“”\n]+)["”]/gu), ([, phrase = ""]) => phrase.toLowerCase());
      const entries = files.flatMap(({ path, lines }) =>
        passagesOf(path, lines).map((passage) => ({ ...passage, path })),
      );
      const found = await rank(entries, new Map(Array.from(terms.keys(), (term) => [term, 1])), weightOf);
      const hits = found.filter(({ text }) => phrases.every((phrase) => text.toLowerCase().includes(phrase)));
      if (hits.length === 0) {
        return `No passage in ${file ?? `${files.length} files`} has any of: ${[...phrases, ...terms.values()].join(", ")}.`;
      }
      const shown = hits.slice(0, maxResults);
      return [`${shown.length} of ${hits.length} passages, best first.`, ...shown.map(hitLine)].join("\n");
    },
  });
  const read = defineTool({
    name: toolNames.read,
    description: `Reads lines of a text file, each with its number; at most ${mostLines} lines a call.`,
    parameters: z.object({
      path: z.string().describe("Path of the file, as list_files shows it."),
      startLine: z.int().min(1).optional().describe("First line, counted from 1. Default: 1."),
      endLine: z.int().min(1).optional().describe("Last line, itself included. Default: as far as allowed."),
    }),
    effect: "none",
    execute: async ({ path, startLine = 1, endLine = Number.POSITIVE_INFINITY }, { signal }) => {
      if (endLine < startLine) throw new InvalidInputError(`endLine ${endLine} lies before startLine ${startLine}.`);
      const file = await folder.read(path, signal);
      const total = file.lines.length;
      if (total === 0) return `${file.path} is empty.`;
      if (startLine > total)
        throw new InvalidInputError(`${file.path} has only ${total} lines; startLine was ${startLine}.`);
      const last = Math.min(total, endLine, startLine + mostLines - 1);
      const before = isProse(file.path) ? passagesOf(file.path, file.lines.slice(0, startLine - 1)).at(-1) : undefined;
      const headings = [...(before?.headings ?? []), ...(before?.kind === "heading" ? [before.text] : [])];
      const under = headings.length === 0 ? "" : `, under: ${headings.join(" > ")}`;
      const lines = file.lines
        .slice(startLine - 1, last)
        .map((text, index) => `${startLine + index}: ${text.replace(/^\uFEFF/, "").slice(0, maxLineLength)}`);
      return [`${file.path}, lines ${startLine}-${last} of ${total}${under}`, ...lines].join("\n");
    },
  });
  return { list, search, read };
}

function describeFile({ path, bytes, lines }: TextFile): string {
  const size = bytes < 1_000 ? `${bytes} B` : `${(bytes / 1_000).toFixed(1)} kB`;
  const heading = passagesOf(path, lines.slice(0, 60)).find(({ kind }) => kind === "heading")?.text;
  const count = `${lines.length} ${lines.length === 1 ? "line" : "lines"}`;
  return `${path}  ${size}, ${count}${heading === undefined ? "" : `  # ${heading.slice(0, 120)}`}`;
}

function weightOf({ kind, path, text }: Entry): number {
  return weights[kind] * (isProse(path) ? 1 : codeFileWeight) * (text.endsWith("?") ? 0.5 : 1);
}

function hitLine({ path, line, text, kind, headings }: Entry): string {
  const mark = kind === "heading" ? `${"#".repeat(Math.min(6, headings.length + 1))} ` : "";
  const shown = text.length > maxShownLength ? `${text.slice(0, maxShownLength)} …` : text;
  const under = headings.slice(-3).map((heading) => heading.slice(0, 100));
  return `${path}:${line}: ${mark}${shown}${under.length === 0 ? "" : ` [under: ${under.join(" > ")}]`}`;
}
