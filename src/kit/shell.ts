import { accessSync, constants, statSync } from "node:fs";
import { delimiter, isAbsolute, join, resolve } from "node:path";
import { z } from "zod";
import {
  anyRule,
  describeValue,
  listRule,
  nameRule,
  type OptionsSchema,
  optionsOf,
  recordRule,
  ruleOf,
  textRule,
  visible,
  wholeNumberRule,
} from "../base/index.ts";
import { InvalidInputError, ToolNotStartedError } from "../errors/index.ts";
import { defineTool, type RunContext, type Tool, toolResult } from "../tools/index.ts";
import { folder } from "./folder.ts";
import type { CommandEnd } from "./shell-command.ts";
import type { WorkspaceFiles } from "./workspace-files.ts";
import { namesOfPath } from "./workspace-path.ts";

/** Options of a shell. */
export interface ShellOptions {
  /**
   * Program and arguments that run the shell, for instance `["bwrap", "--unshare-all", …]`. A program without `/` is looked up in `PATH`,
   * and must be there when the tool is defined. Default: none; a command then has all rights of the process.
   */
  readonly wrap?: readonly string[] | undefined;
  /** Whether a person approves each command: always, never, or by this function of the arguments. Default true. */
  readonly needsApproval?:
    | boolean
    | ((args: { readonly command: string }, run: RunContext) => boolean | Promise<boolean>)
    | undefined;
  /** Milliseconds after which a command and its whole process group are killed, from 1 to 3,600,000. Default 120,000. */
  readonly timeoutMs?: number | undefined;
  /** Characters of output that the model sees: the beginning and the end. Default 30,000. */
  readonly maxOutputCharacters?: number | undefined;
  /** Names of variables of this process that commands get, besides `PATH`, `LANG`, `LC_ALL`, `TZ` and `TERM`. Default: none. */
  readonly passEnvironment?: readonly string[] | undefined;
  /** Further variables of the commands' environment. Default: none. */
  readonly environment?: Readonly<Record<string, string>> | undefined;
  /** Name of the tool. Default `shell`. */
  readonly name?: string | undefined;
}

/** Options of `shell()`. */
export interface ShellToolOptions extends ShellOptions {
  /** The folder in which commands start: a path or a `file:` URL. Default: the working directory. */
  readonly folder?: string | URL | undefined;
}

const MOST_MS = 3_600_000;
/** How long the tool waits for a killed command, in milliseconds. */
const GRACE_MS = 15_000;

const rules: OptionsSchema<ShellOptions>["rules"] = {
  wrap: listRule("a program and its arguments, a list of texts", textRule),
  needsApproval: ruleOf(
    "true, false or a function",
    (value) => typeof value === "boolean" || typeof value === "function",
  ),
  timeoutMs: wholeNumberRule(1, MOST_MS),
  maxOutputCharacters: wholeNumberRule(100, 1_000_000),
  passEnvironment: listRule("a list of names of variables", nameRule),
  environment: recordRule("an object that maps names of variables to texts", textRule),
  name: anyRule,
};
const instead = { cwd: "folder", approval: "needsApproval", timeout: "timeoutMs", sandbox: "wrap", env: "environment" };

export const shellOptionsSchema: OptionsSchema<ShellOptions> = { rules, instead };

/**
 * A tool that runs commands in a folder: effect class `once`, with approval unless `needsApproval` is false or a function. Throws
 * `InvalidInputError` if the folder or the wrapper's program does not exist.
 */
export function shell(given?: ShellToolOptions): Tool {
  const { folder: path = ".", ...options } = optionsOf<ShellToolOptions>(given, "shell()", {
    rules: { ...rules, folder: anyRule },
    instead,
  });
  return shellTool(folder(path), options, "shell()");
}

/** The shell of a workspace. */
export function shellTool(files: WorkspaceFiles, options: ShellOptions, of: string): Tool {
  if (typeof files.execute !== "function") {
    throw new InvalidInputError(`${of}: a workspace of ${files.name}() has no shell; use folder("./work")`);
  }
  if (process.platform === "win32") throw new InvalidInputError(`${of}: the shell needs a POSIX system`);
  const { needsApproval = true, timeoutMs = 120_000, maxOutputCharacters = 30_000 } = options;
  const wrap = wrapOf(options.wrap ?? [], of);
  const environment = environmentOf(options);
  const tool = defineTool({
    name: options.name ?? "shell",
    description: `Runs a command with /bin/sh in the workspace and shows its output and exit code. It has no input, and ends after ${Math.ceil(timeoutMs / 1_000)} seconds at the latest; processes that it leaves in the background are ended with it.`,
    parameters: z.object({
      command: z.string().min(1).max(100_000).describe("The command."),
      folder: z.string().default("").describe("The folder to run it in, below the workspace. Default: its root."),
    }),
    effect: "once",
    needsApproval,
    timeoutMs: timeoutMs + GRACE_MS,
    maxOutputCharacters: maxOutputCharacters + 1_000,
    describeCall: ({ command, folder: below }) => {
      const where = below === "" ? "" : ` in ${JSON.stringify(below)}`;
      return `Run${where}: ${visible(command)}`;
    },
    execute: async ({ command, folder: below }, run) => {
      if (command.includes("\0")) throw new ToolNotStartedError("The command contains a NUL character.");
      const start = startIn(below);
      const asked = { command, folder: start, wrap, environment, timeoutMs, maxOutputCharacters };
      const end = await files.execute?.(asked, run);
      if (end === undefined) throw new ToolNotStartedError("The workspace has no shell any more.");
      return toolResult({ content: [{ type: "text", text: textOfEnd(end, timeoutMs) }], structured: factsOf(end) });
    },
  });
  return tool as Tool;
}

function startIn(below: string): string {
  try {
    return namesOfPath(below).join("/");
  } catch (error) {
    throw new ToolNotStartedError((error as Error).message, { cause: error });
  }
}

/** A failed command is an answer of the shell, not a failure of the tool: many programs report a finding by their exit code. */
function textOfEnd(end: CommandEnd, timeoutMs: number): string {
  const how = end.timedOut
    ? `killed after ${timeoutMs} ms`
    : end.signal === null
      ? `exit code ${end.exitCode}`
      : `ended by ${end.signal}`;
  const output = end.output.trimEnd();
  return output === "" ? `[${how}, no output]` : `${output}\n[${how}]`;
}

function factsOf({ exitCode, signal, timedOut, leftOut }: CommandEnd) {
  return { exitCode, signal, timedOut, leftOut };
}

const passed = ["PATH", "LANG", "LC_ALL", "TZ", "TERM"];

/** Commands get nothing of the process's environment that was not named, because it contains keys and passwords. */
function environmentOf({ passEnvironment = [], environment = {} }: ShellOptions): Readonly<Record<string, string>> {
  const own = [...passed, ...passEnvironment].flatMap((name) => {
    const value = process.env[name];
    return value === undefined ? [] : [[name, value] as const];
  });
  return Object.freeze({ ...Object.fromEntries(own), ...environment });
}

/** The wrapper with the absolute path of its program, so that a command cannot replace it. */
function wrapOf(wrap: readonly string[], of: string): readonly string[] {
  const [program, ...args] = wrap;
  if (program === undefined) return [];
  if (wrap.some((word) => word.includes("\0")) || program.trim() === "") {
    throw new InvalidInputError(`${of}: wrap begins with ${describeValue(program)}; expected the name of a program`);
  }
  const found = program.includes("/")
    ? [isAbsolute(program) ? program : resolve(program)]
    : (process.env["PATH"] ?? "").split(delimiter).flatMap((path) => (path === "" ? [] : [join(path, program)]));
  const path = found.find(isProgram);
  if (path !== undefined) return Object.freeze([path, ...args]);
  const where = program.includes("/") ? "does not exist or cannot be run" : "is not in PATH";
  throw new InvalidInputError(
    `${of}: the program "${program}" of wrap ${where}; install it, or leave wrap out to run commands without a sandbox`,
    { details: { program } },
  );
}

function isProgram(path: string): boolean {
  try {
    accessSync(path, constants.X_OK);
    return statSync(path).isFile();
  } catch {
    return false;
  }
}
