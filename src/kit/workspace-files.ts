import { hasMethods, type OptionRule, ruleOf } from "../base/index.ts";
import type { RunContext } from "../tools/index.ts";
import type { FolderEntry } from "./jailed-folder.ts";
import type { CommandEnd, ShellCommand } from "./shell-command.ts";

/**
 * The files of a workspace: a folder, the artifacts of the agent, or a sandbox elsewhere. Paths are relative, with `/`, and without `..`;
 * "" is the root. Each method rejects with an `InvalidInputError` whose message the model can read; it must not contain secrets or paths of
 * the machine. Methods may be called at the same time, also for several agents.
 */
export interface WorkspaceFiles {
  /** Names the kind of workspace in messages, for instance `folder`. */
  readonly name: string;
  /**
   * Whether all files are artifacts of the agent: writing then has effect class `none`, so that it also runs in a fork. Default false:
   * `write` is `keyed`, and `edit` is `once`.
   */
  readonly isInternal?: boolean | undefined;
  /** The members of a folder, sorted by name. Rejects if there is no such folder; the root always exists. */
  list(path: string, run: RunContext): Promise<readonly FolderEntry[]>;
  /** The content of a file. Rejects if there is none, and for more than `maxBytes` bytes. */
  read(path: string, options: { readonly maxBytes: number }, run: RunContext): Promise<Uint8Array>;
  /** Replaces the content of a file as a whole, and creates it and the folders above it. The same call again changes nothing. */
  write(path: string, content: Uint8Array, run: RunContext): Promise<void>;
  /** Runs a command in the workspace. Without this method the workspace cannot have a shell. */
  execute?(command: ShellCommand, run: RunContext): Promise<CommandEnd>;
}

export const workspaceFilesRule: OptionRule = ruleOf(
  'the files of a workspace: folder("./work"), artifactFiles(), or an object with name, list(), read() and write()',
  (value) => hasMethods(value, ["list", "read", "write"]) && "name" in value && typeof value.name === "string",
);
