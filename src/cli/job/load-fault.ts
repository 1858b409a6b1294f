import { spawnSync } from "node:child_process";
import { existsSync, readFileSync } from "node:fs";
import { extname } from "node:path";
import { fileURLToPath } from "node:url";
import { isPersonsFile } from "./loaded-files.ts";

/** Where the code of an agent file is wrong. */
export interface LoadFault {
  readonly path: string;
  readonly line: number;
  /** Counted from 1; `undefined` if Node does not name it. */
  readonly column: number | undefined;
  /** The lines of the source as Node shows them, with a line that points at the place. */
  readonly source: readonly string[];
}

/** Most files that are parsed again to find a syntax error. */
const mostChecked = 20;

/**
 * Where an error of `import()` occurred: at the start of its stack for syntax errors, in the first frame of the person's code otherwise.
 * Node does not name the file of a syntax error in plain JavaScript; then the given files are parsed again, the last one first.
 * @param loaded Paths of files that were loaded, in order.
 */
export function loadFaultOf(error: unknown, loaded: readonly string[]): LoadFault | undefined {
  if (!(error instanceof Error) || error.stack === undefined) return undefined;
  const named = headOf(error.stack);
  if (named !== undefined) return named;
  if (error instanceof SyntaxError) return jsonFault(error.message) ?? checkedFault(loaded);
  return frameOf(error.stack);
}

/** Parses `file:line`, the source and `^^^`, with which Node begins the stack of a syntax error. */
function headOf(stack: string): LoadFault | undefined {
  const [first = "", ...rest] = stack.split("\n");
  const [, place = "", line] = /^(.+):(\d+)$/.exec(first) ?? [];
  const end = rest.findIndex((text) => /^\s*\^+\s*$/.test(text));
  if (line === undefined || end < 0) return undefined;
  const column = (rest[end] ?? "").indexOf("^") + 1;
  return { path: pathOf(place), line: Number(line), column, source: rest.slice(0, end + 1) };
}

/** JSON: "/path/to/file.json: Expected … (line 2 column 1)". */
function jsonFault(message: string): LoadFault | undefined {
  const [, path, line, column] = /^(.+\.json): .*\(line (\d+) column (\d+)\)$/.exec(message) ?? [];
  return path === undefined ? undefined : pointedAt(path, Number(line), Number(column));
}

function checkedFault(loaded: readonly string[]): LoadFault | undefined {
  const scripts = loaded.filter((path) => [".js", ".mjs", ".cjs"].includes(extname(path)) && existsSync(path));
  for (const path of scripts.toReversed().slice(0, mostChecked)) {
    const { stderr } = spawnSync(process.execPath, ["--check", path], { encoding: "utf8" });
    const fault = headOf(stderr);
    if (fault !== undefined) return fault;
  }
  return undefined;
}

/** The newest frame in the person's code. */
function frameOf(stack: string): LoadFault | undefined {
  for (const [, place = "", line, column] of stack.matchAll(
    /^\s+at (?:.*[( ])?((?:file:\/\/|\/|[A-Z]:\\).*):(\d+):(\d+)\)?$/gm,
  )) {
    const path = pathOf(place);
    if (isPersonsFile(path)) return pointedAt(path, Number(line), Number(column));
  }
  return undefined;
}

function pointedAt(path: string, line: number, column: number): LoadFault {
  const text = existsSync(path) ? readFileSync(path, "utf8").split("\n")[line - 1] : undefined;
  // A tab before the place stays a tab, so that the mark is below it.
  const indentation = text?.slice(0, column - 1).replaceAll(/[^\t]/g, " ");
  return { path, line, column, source: text === undefined ? [] : [text, `${indentation}^`] };
}

function pathOf(place: string): string {
  const [path = ""] = place.split("?");
  return path.startsWith("file:") ? fileURLToPath(path) : path;
}
