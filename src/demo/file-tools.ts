import { z } from "zod";
import { InvalidInputError } from "../errors/index.ts";
import { isProse, type Passage, passagesOf, rank, termsOf } from "../model/index.ts";
import { defineTool } from "../tools/index.ts";
import { toolNames } from "./document-model.ts";
import { type TextFile, TextFolder } from "./text-folder.ts";

const most = { listed: 100, lines: 400, lineLength: 2_000, hits: 20, hitLength: 600 };
const weights = { prose: 1, item: 1, row: 0.9, heading: 0.5, code: 0.4 } satisfies Record<Passage["kind"], number>;
type Hit = Passage & Pick<TextFile, "path">;
const codeFileWeight = 0.3;

/**
 * Tools that let an agent read the text files of one folder, and nothing else. `root` may be relative to the working
 * directory; it is resolved at each call. `only` limits the tools to these entries of the root.
 */
export function fileTools(root: string, only?: readonly string[]) {
  const folder = new TextFolder(root, only);
  const list = defineTool({
    name: toolNames.list,
    description: "Lists the text files of the folder: path, lines, first heading. Documents come before code.",
    parameters: z.object({ part: z.string().optional().describe("Only paths that contain this text. Default: all.") }),
    effect: "none",
    execute: async ({ part = "" }, { signal }) => {
      const all = await folder.files(signal);
      const fitting = all.filter((path) => path.toLowerCase().includes(part.toLowerCase()));
      const shown = await folder.readEach(fitting.slice(0, most.listed), signal);
      const none =
        part === "" ? "There are no text files here." : `No path contains "${part}"; ${all.length} files do not.`;
      const more = fitting.length - most.listed;
      const rest = more > 0 ? [`… and ${more} more files; give a part of their paths to see them.`] : [];
      return [...shown.map(describeFile), ...rest].join("\n") || none;
    },
  });
  const search = defineTool({
    name: toolNames.search,
    description:
      "Searches the text of all files, or of one, for words; no regular expressions. Gives the best passages, one a line, as path:line: text, with the headings it stands under in brackets. Put a fixed phrase in double quotes.",
    parameters: z.object({
      query: z.string().min(1).max(1_000).describe("The words to look for; word endings do not matter."),
      file: z.string().optional().describe("Path of the only file to search, as list_files shows it. Default: all."),
      maxResults: z.int().min(1).max(50).optional().describe(`Most passages. Default: ${most.hits}.`),
    }),
    effect: "none",
    execute: async ({ query, file, maxResults = most.hits }, { signal }) => {
      const terms = termsOf(query);
      if (terms.size === 0) return "The query has no word to search for: give words that the text would use.";
      const paths = file === undefined ? await folder.files(signal) : [(await folder.read(file, signal)).path];
      const files = await folder.readEach(paths, signal);
      const phrases = Array.from(query.matchAll(/["“]([^"“”\n]+)["”]/gu), ([, phrase = ""]) => phrase.toLowerCase());
      const passages = files.flatMap(({ path, lines }) => passagesOf(path, lines).map((one) => ({ ...one, path })));
      const found = await rank(passages, new Map(Array.from(terms.keys(), (term) => [term, 1])), weightOf);
      const hits = found.filter(({ text }) => phrases.every((phrase) => text.toLowerCase().includes(phrase)));
      const wanted = [...phrases, ...terms.values()].join(", ");
      if (hits.length === 0) return `No passage in ${file ?? `${files.length} files`} has any of: ${wanted}.`;
      const shown = hits.slice(0, maxResults);
      return [`${shown.length} of ${hits.length} passages, best first.`, ...shown.map(hitLine)].join("\n");
    },
  });
  const read = defineTool({
    name: toolNames.read,
    description: `Reads lines of a text file, each with its number; at most ${most.lines} lines a call.`,
    parameters: z.object({
      path: z.string().describe("Path of the file, as list_files shows it."),
      startLine: z.int().min(1).optional().describe("First line, counted from 1. Default: 1."),
      endLine: z.int().min(1).optional().describe("Last line, itself included. Default: as far as allowed."),
    }),
    effect: "none",
    execute: async ({ path, startLine = 1, endLine = Number.POSITIVE_INFINITY }, { signal }) => {
      if (endLine < startLine) throw new InvalidInputError(`endLine ${endLine} is before startLine ${startLine}.`);
      const file = await folder.read(path, signal);
      const total = file.lines.length;
      if (total === 0) return `${file.path} is empty.`;
      const wrong = `${file.path} has only ${total} lines; startLine was ${startLine}.`;
      if (startLine > total) throw new InvalidInputError(wrong);
      const last = Math.min(total, endLine, startLine + most.lines - 1);
      const before = passagesOf(file.path, file.lines.slice(0, startLine - 1)).at(-1);
      const headings = [...(before?.headings ?? []), ...(before?.kind === "heading" ? [before.text] : [])];
      const under = headings.length === 0 ? "" : `, under: ${headings.join(" > ")}`;
      const shown = file.lines.slice(startLine - 1, last).map((text) => text.slice(0, most.lineLength));
      const lines = shown.map((text, at) => `${startLine + at}: ${text}`);
      return [`${file.path}, lines ${startLine}-${last} of ${total}${under}`, ...lines].join("\n");
    },
  });
  return { list, search, read };
}

function describeFile({ path, lines }: TextFile): string {
  const heading = passagesOf(path, lines.slice(0, 60)).find(({ kind }) => kind === "heading");
  return `${path}  ${lines.length} lines${heading === undefined ? "" : `  # ${heading.text.slice(0, 120)}`}`;
}

function weightOf({ kind, path, text }: Hit): number {
  return weights[kind] * (isProse(path) ? 1 : codeFileWeight) * (text.endsWith("?") ? 0.5 : 1);
}

function hitLine({ path, line, text, kind, headings }: Hit): string {
  const mark = kind === "heading" ? `${"#".repeat(headings.length + 1)} ` : "";
  const shown = text.length > most.hitLength ? `${text.slice(0, most.hitLength)} …` : text;
  const under = headings.slice(-3).join(" > ").slice(0, most.hitLength);
  return `${path}:${line}: ${mark}${shown}${under === "" ? "" : ` [under: ${under}]`}`;
}
