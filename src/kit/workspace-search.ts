import { z } from "zod";
import { InvalidInputError } from "../errors/index.ts";
import { boundedMatches, compilePattern, defineTool, type RunContext } from "../tools/index.ts";
import { linesOf, textIn, textOfContent } from "./text-content.ts";
import type { WorkspaceFiles } from "./workspace-files.ts";
import { namesOfPath } from "./workspace-path.ts";

/** Folders that a search does not enter. `ls` and `read` still show them. */
const skipped: ReadonlySet<string> = new Set([".git", "node_modules"]);
const MOST_FILES = 20_000;
const MOST_FOUND = 1_000;
const MOST_MATCHES = 200;
/** A search stops after this time, in milliseconds; its result then states that it is not complete. */
const SEARCH_MS = 10_000;
/** Of a longer line only the beginning is searched. */
const LONGEST_LINE = 2_000;
const SHOWN_LINE = 300;
/** A larger file is not searched. */
const LARGEST_SEARCHED = 5_000_000;

interface SearchOptions {
  readonly prefix?: string | undefined;
}

/** The tools that find files, by name and by content. */
export function searchTools(files: WorkspaceFiles, { prefix = "" }: SearchOptions) {
  const glob = defineTool({
    name: `${prefix}glob`,
    description:
      "Finds files of the workspace by a pattern of their paths, for instance **/*.ts or src/*.{css,html}. It does not enter .git and node_modules.",
    parameters: z.object({
      pattern: z.string().min(1).max(500),
      path: z
        .string()
        .default("")
        .describe("The folder to search in; the pattern is relative to it. Default: the root."),
    }),
    effect: "none",
    execute: async ({ pattern, path }, run) => {
      const walk = await filesBelow(files, path, run);
      const { paths: found, isComplete } = await matching(walk.paths, { pattern, path, run });
      const more = found.length > MOST_FOUND ? [`… and ${found.length - MOST_FOUND} more`] : [];
      const lines = [...found.slice(0, MOST_FOUND), ...more, ...incomplete(walk.isComplete && isComplete)];
      return lines.length === 0 ? "No file matches." : lines.join("\n");
    },
  });
  const grep = defineTool({
    name: `${prefix}grep`,
    description:
      "Searches the text files of the workspace line by line with a regular expression, and shows path, line number and line. It does not enter .git and node_modules.",
    parameters: z.object({
      pattern: z.string().min(1).max(1_000).describe("A JavaScript regular expression."),
      path: z.string().default("").describe("A folder to search in, or one file. Default: the whole workspace."),
      glob: z.string().min(1).max(500).optional().describe("Only files whose path matches, for instance **/*.ts."),
      ignoreCase: z.boolean().default(false),
      limit: z.number().int().min(1).max(MOST_MATCHES).default(100).describe("The most lines to show."),
    }),
    effect: "none",
    execute: async (args, run) => await grepped(files, args, run),
  });
  return [glob, grep];
}

interface GrepArguments {
  readonly pattern: string;
  readonly path: string;
  readonly glob?: string | undefined;
  readonly ignoreCase: boolean;
  readonly limit: number;
}

async function grepped(files: WorkspaceFiles, args: GrepArguments, run: RunContext): Promise<string> {
  const regex = regexOf(args);
  const { paths, isComplete, isNamed } = await searched(files, args, run);
  const deadline = performance.now() + SEARCH_MS;
  const lines: string[] = [];
  let isWhole = isComplete;
  for (const file of paths) {
    if (lines.length >= args.limit || performance.now() > deadline) {
      isWhole = false;
      break;
    }
    run.signal.throwIfAborted();
    const text = await textOf(files, file, { isNamed, run });
    if (text === undefined) continue;
    const all = linesOf(text);
    const most = args.limit - lines.length;
    const heads = all.map((line) => line.slice(0, LONGEST_LINE));
    const found = await boundedMatches(heads, (line) => regex.test(line), { signal: run.signal, most, deadline });
    if (!found) throw new InvalidInputError("The pattern takes too long to search with: use a simpler one.");
    for (const index of found.matches) lines.push(`${file}:${index + 1}: ${shownLine(all[index] ?? "")}`);
    isWhole &&= found.tested === all.length;
  }
  if (lines.length === 0) return ["No line matches.", ...incomplete(isWhole)].join("\n");
  return [...lines, ...incomplete(isWhole)].join("\n");
}

/** The files to search: one file, or those of a folder. */
async function searched(files: WorkspaceFiles, { path, glob }: GrepArguments, run: RunContext) {
  const names = namesOfPath(path);
  const parent = names.slice(0, -1).join("/");
  const own =
    names.length === 0 ? undefined : (await files.list(parent, run)).find(({ name }) => name === names.at(-1));
  if (own?.kind === "file") return { paths: [names.join("/")], isComplete: true, isNamed: true };
  const walk = await filesBelow(files, path, run);
  if (glob === undefined) return { ...walk, isNamed: false };
  const { paths, isComplete } = await matching(walk.paths, { pattern: glob, path, run });
  return { paths, isComplete: walk.isComplete && isComplete, isNamed: false };
}

function regexOf({ pattern, ignoreCase }: GrepArguments): RegExp {
  try {
    const regex = compilePattern(pattern);
    return ignoreCase ? new RegExp(regex.source, "iu") : regex;
  } catch (error) {
    if (!(error instanceof SyntaxError)) throw error;
    throw new InvalidInputError(`The pattern is invalid: ${error.message}.`, { cause: error });
  }
}

/** `undefined` for files of a folder that cannot be searched: binary, large, or gone meanwhile. A file that was named must be text. */
async function textOf(
  files: WorkspaceFiles,
  path: string,
  { isNamed, run }: { readonly isNamed: boolean; readonly run: RunContext },
): Promise<string | undefined> {
  try {
    const content = await files.read(path, { maxBytes: LARGEST_SEARCHED }, run);
    return isNamed ? textOfContent(path, content) : textIn(content);
  } catch (error) {
    if (!isNamed && error instanceof InvalidInputError) return undefined;
    throw error;
  }
}

function shownLine(line: string): string {
  const start = line
    .slice(0, SHOWN_LINE)
    .toWellFormed()
    .replaceAll(/\p{Cc}/gu, " ")
    .trim();
  return line.length > SHOWN_LINE ? `${start}…` : start;
}

function incomplete(isComplete: boolean): readonly string[] {
  return isComplete ? [] : ["[The search is incomplete: search in a folder, or with a narrower pattern.]"];
}

/** The paths of all files below a folder, in alphabetical order of their folders. Links are not followed. */
async function filesBelow(
  files: WorkspaceFiles,
  path: string,
  run: RunContext,
): Promise<{ readonly paths: readonly string[]; readonly isComplete: boolean }> {
  const deadline = performance.now() + SEARCH_MS;
  const start = namesOfPath(path).join("/");
  const paths: string[] = [];
  const folders = [start];
  for (let folder = folders.shift(); folder !== undefined; folder = folders.shift()) {
    run.signal.throwIfAborted();
    if (paths.length >= MOST_FILES || performance.now() > deadline) return { paths: paths.sort(), isComplete: false };
    const entries = await files.list(folder, run).catch((error: unknown) => {
      // A folder that is gone meanwhile, or may not be read, has no files; the one that was asked for must be there.
      if (folder === start || !(error instanceof InvalidInputError)) throw error;
      return [];
    });
    for (const { name, kind } of entries) {
      const below = folder === "" ? name : `${folder}/${name}`;
      if (kind === "file") paths.push(below);
      else if (kind === "folder" && !skipped.has(name)) folders.push(below);
    }
  }
  return { paths: paths.sort(), isComplete: true };
}

async function matching(
  paths: readonly string[],
  { pattern, path, run }: { readonly pattern: string; readonly path: string; readonly run: RunContext },
): Promise<{ readonly paths: readonly string[]; readonly isComplete: boolean }> {
  const { default: picomatch } = await import("picomatch");
  const start = namesOfPath(path).join("/");
  const strip = start === "" ? 0 : start.length + 1;
  const test = picomatch(pattern.replace(/^\.?\//, ""), { dot: true });
  const relative = paths.map((one) => one.slice(strip));
  const deadline = performance.now() + SEARCH_MS;
  const found = await boundedMatches(relative, (one) => test(one), {
    signal: run.signal,
    most: relative.length,
    deadline,
  });
  if (!found) throw new InvalidInputError("The pattern takes too long to match with: use a simpler one.");
  return { paths: found.matches.map((index) => paths[index] ?? ""), isComplete: found.tested === paths.length };
}
