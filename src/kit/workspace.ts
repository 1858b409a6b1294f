import { z } from "zod";
import { flagRule, optionsOf, optionsRule, ruleOf, wholeNumberRule } from "../base/index.ts";
import { InvalidInputError, ToolNotStartedError } from "../errors/index.ts";
import type { Plugin } from "../hooks/index.ts";
import { defineTool, type RunContext, toolResult } from "../tools/index.ts";
import { editText } from "./edit-text.ts";
import { oneAtATime } from "./one-at-a-time.ts";
import { prefixRule } from "./prefix-rule.ts";
import { type ShellOptions, shellOptionsSchema, shellTool } from "./shell.ts";
import { hashOfContent, imageTypeOf, linesOf, textOfContent } from "./text-content.ts";
import { type WorkspaceFiles, workspaceFilesRule } from "./workspace-files.ts";
import { namesOfPath, refusedPath } from "./workspace-path.ts";
import { searchTools } from "./workspace-search.ts";

/** Options of `workspace()`. */
export interface WorkspaceOptions {
  /** Whether the model may write: `write` and `edit`. Default true. */
  readonly write?: boolean | undefined;
  /** Whether a person approves each `write` and `edit`: always, never, or by this function. Default false. */
  readonly needsApproval?: boolean | ((args: { readonly path: string }) => boolean | Promise<boolean>) | undefined;
  /** Adds a tool `shell`, which starts in the workspace. Default: none. */
  readonly shell?: ShellOptions | true | undefined;
  /** Bytes of the largest file that is read, from 1 to 100,000,000. Larger ones are refused. Default 10,000,000. */
  readonly maxFileBytes?: number | undefined;
  /** Text before the names of the tools, for an agent with two workspaces: letters, digits, `_` and `-`. Default: none. */
  readonly prefix?: string | undefined;
}

const MOST_LISTED = 1_000;
const LINES = 2_000;
const LONGEST_LINE = 2_000;
const MOST_CHARACTERS = 30_000;

/**
 * Tools on files: `ls`, `read`, `glob`, `grep`, and `write`, `edit` unless `write` is false. Reading has effect class `none`, `write` is
 * `keyed`, and `edit` is `once` and finds out after a crash whether the change is there.
 * @param files `folder("./work")`, `artifactFiles()`, or files elsewhere.
 * @throws InvalidInputError for invalid options.
 */
export function workspace(files: WorkspaceFiles, given?: WorkspaceOptions): Plugin {
  workspaceFilesRule(files, "workspace(): its files");
  const options = optionsOf<WorkspaceOptions>(given, "workspace()", {
    rules: {
      write: flagRule,
      needsApproval: ruleOf("true, false or a function", isApproval),
      shell: (value, where) => (value === true ? value : optionsRule(shellOptionsSchema)(value, where)),
      maxFileBytes: wholeNumberRule(1, 100_000_000),
      prefix: prefixRule,
    },
    instead: { readOnly: "write: false", readonly: "write: false", approval: "needsApproval", sandbox: "shell" },
  });
  const { write = true, shell, prefix = "" } = options;
  const readers = readTools(files, options);
  const finders = searchTools(files, options);
  const writers = write ? writeTools(files, options) : [];
  const shells = shell === undefined ? [] : [shellIn(files, shell, prefix)];
  return { name: `${prefix}workspace`, tools: [...readers, ...finders, ...writers, ...shells] };
}

function isApproval(value: unknown): boolean {
  return typeof value === "boolean" || typeof value === "function";
}

function shellIn(files: WorkspaceFiles, given: ShellOptions | true, prefix: string) {
  const options = given === true ? {} : given;
  return shellTool(files, { ...options, name: options.name ?? `${prefix}shell` }, "workspace(): shell");
}

function readTools(files: WorkspaceFiles, { prefix = "", maxFileBytes: maxBytes = 10_000_000 }: WorkspaceOptions) {
  const ls = defineTool({
    name: `${prefix}ls`,
    description: "Lists a folder of the workspace: folders end with /, files have their size in bytes.",
    parameters: z.object({ path: z.string().default("").describe("The folder. Default: the root of the workspace.") }),
    effect: "none",
    execute: async ({ path }, run) => {
      const entries = await files.list(namesOfPath(path).join("/"), run);
      const lines = entries.slice(0, MOST_LISTED).map(({ name, kind, size }) => {
        // A line break in a name would look like another file.
        const shown = /\p{Cc}/u.test(name) ? JSON.stringify(name) : name;
        if (kind === "folder") return `${shown}/`;
        return kind === "file" ? `${shown}  ${size}` : `${shown}  (${kind})`;
      });
      const more = entries.length - lines.length;
      return [...lines, ...(more > 0 ? [`… and ${more} more; use glob`] : [])].join("\n") || "The folder is empty.";
    },
  });
  const read = defineTool({
    name: `${prefix}read`,
    description: `Reads a text file of the workspace, at most ${LINES} lines at a time. Each line begins with its number and a tab, which are not part of the file. Images are shown as images.`,
    parameters: z.object({
      path: z.string(),
      from: z.number().int().min(1).default(1).describe("The first line to show, counted from 1."),
      lines: z.number().int().min(1).max(LINES).default(LINES).describe("How many lines to show at most."),
    }),
    effect: "none",
    execute: async ({ path, from, lines: most }, run) => {
      const content = await files.read(pathOfFile(path), { maxBytes }, run);
      const mimeType = imageTypeOf(content);
      if (mimeType !== undefined) return toolResult({ content: [{ type: "image", data: content, mimeType }] });
      return shownLines(path, linesOf(textOfContent(path, content)), { from, most });
    },
  });
  return [ls, read];
}

function shownLines(
  path: string,
  lines: readonly string[],
  { from, most }: { readonly from: number; readonly most: number },
): string {
  if (lines.length === 0) return "The file is empty.";
  if (from > lines.length)
    throw refusedPath(path, `it has ${lines.length} lines, so there is nothing from line ${from} on`);
  const shown: string[] = [];
  let room = MOST_CHARACTERS;
  for (const line of lines.slice(from - 1, from - 1 + most)) {
    const cut =
      line.length > LONGEST_LINE ? `${line.slice(0, LONGEST_LINE).toWellFormed()}… (${line.length} characters)` : line;
    room -= cut.length + 8;
    if (room < 0 && shown.length > 0) break;
    shown.push(`${from + shown.length}\t${cut}`);
  }
  const next = from + shown.length;
  if (next > lines.length) return shown.join("\n");
  return `${shown.join("\n")}\n\n[lines ${from} to ${next - 1} of ${lines.length}; go on with from: ${next}]`;
}

function writeTools(files: WorkspaceFiles, options: WorkspaceOptions) {
  const { prefix = "", needsApproval = false, maxFileBytes: maxBytes = 10_000_000 } = options;
  const lock = lockOf(files);
  const write = defineTool({
    name: `${prefix}write`,
    description:
      "Writes a text file of the workspace as a whole, and creates it and its folders. To change a part, use edit.",
    parameters: z.object({ path: z.string(), content: z.string().max(1_000_000) }),
    effect: files.isInternal === true ? "none" : "keyed",
    needsApproval,
    describeCall: ({ path, content }) => `Write ${JSON.stringify(path)} (${content.length} characters)?`,
    execute: async ({ path, content }, run) => {
      const bytes = Buffer.from(content.toWellFormed());
      const file = pathOfFile(path);
      await lock(file, () => files.write(file, bytes, run));
      return `Wrote ${path}: ${linesOf(content).length} lines, ${bytes.byteLength} bytes.`;
    },
  });
  const editing = async (args: EditArguments, run: RunContext): Promise<string> => {
    const file = pathOfFile(args.path);
    const before = await files.read(file, { maxBytes }, run);
    const noted = run.noted as Noted | null;
    // An earlier attempt has made the change.
    if (noted !== null && hashOfContent(before) === noted.after) return `Edited ${args.path}.`;
    const text = textOfContent(args.path, before);
    const edited = editText(text, args);
    if (!edited.ok) throw refusedEdit(args.path, edited.why);
    const after = Buffer.from(edited.text);
    if (after.byteLength > maxBytes) throw refusedEdit(args.path, `the file would have more than ${maxBytes} bytes`);
    const hashes: Noted = { before: hashOfContent(before), after: hashOfContent(after) };
    await run.note({ ...hashes });
    // Storing the note takes a while in which a person or a program may save the file.
    const latest = await files.read(file, { maxBytes }, run);
    if (hashOfContent(latest) !== hashes.before)
      throw refusedEdit(args.path, "it has changed meanwhile; read it again");
    await files.write(file, after, run).catch(async (error: unknown) => {
      const now = await files.read(file, { maxBytes }, run);
      if (hashOfContent(now) === hashes.before) throw notStarted(error);
      throw error;
    });
    return editedText(args.path, edited.count, edited.line);
  };
  const edit = defineTool({
    name: `${prefix}edit`,
    description:
      "Replaces a passage of a text file of the workspace. Read the file first; old is the exact passage, without line numbers, and must occur once unless all is true.",
    parameters: z.object({
      path: z.string(),
      old: z.string().min(1).max(500_000).describe("The passage to replace."),
      new: z.string().max(500_000).describe("The text in its place; empty to delete the passage."),
      all: z.boolean().default(false).describe("Replaces all occurrences."),
    }),
    effect: files.isInternal === true ? "none" : "once",
    needsApproval,
    describeCall: ({ path, old, new: next, all }) =>
      `Edit ${JSON.stringify(path)}: replace ${all ? "all of " : ""}${JSON.stringify(old.slice(0, 200))} by ${JSON.stringify(next.slice(0, 200))}?`,
    execute: async (args, run) => {
      if (args.old === args.new) throw new ToolNotStartedError("old and new are the same.");
      const file = notStartedBy(() => pathOfFile(args.path));
      return await lock(file, () => editing(args, run).catch(rethrowRefusal));
    },
    reconcile: async ({ path }, run) => {
      const noted = run.noted as Noted | null;
      // The note is stored before anything is written.
      if (noted === null) return { resume: true };
      const now = hashOfContent(await files.read(pathOfFile(path), { maxBytes }, run));
      if (now === noted.after) return { done: true, result: `Edited ${path}.` };
      return now === noted.before ? { resume: true } : { unknown: true };
    },
  });
  return [write, edit];
}

/** What an edit notes before it writes: hashes of the file without and with the change. */
interface Noted {
  readonly before: string;
  readonly after: string;
}

interface EditArguments {
  readonly path: string;
  readonly old: string;
  readonly new: string;
  readonly all: boolean;
}

function editedText(path: string, count: number, line: number): string {
  return count === 1 ? `Edited ${path} at line ${line}.` : `Edited ${path}: ${count} passages, from line ${line} on.`;
}

function pathOfFile(path: string): string {
  const name = namesOfPath(path).join("/");
  if (name === "") throw refusedPath(path, "it is the root of the workspace, not a file");
  return name;
}

function refusedEdit(path: string, why: string): InvalidInputError {
  return new InvalidInputError(`${path} was not edited: ${why}.`);
}

/** What is refused before the file is written has had no effect, so the outcome is known. */
function rethrowRefusal(error: unknown): never {
  throw error instanceof InvalidInputError ? notStarted(error) : error;
}

function notStartedBy<T>(work: () => T): T {
  try {
    return work();
  } catch (error) {
    throw notStarted(error);
  }
}

function notStarted(error: unknown): ToolNotStartedError {
  return new ToolNotStartedError(error instanceof Error ? error.message : String(error), { cause: error });
}

/** Calls of one answer run in parallel: those that change a file run one after the other. */
function lockOf(files: WorkspaceFiles): ReturnType<typeof oneAtATime> {
  const known = locks.get(files) ?? oneAtATime();
  locks.set(files, known);
  return known;
}

const locks = new WeakMap<WorkspaceFiles, ReturnType<typeof oneAtATime>>();
