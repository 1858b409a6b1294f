import { statSync } from "node:fs";
import { resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { describeValue, reading } from "../base/index.ts";
import { InvalidInputError, ToolNotStartedError } from "../errors/index.ts";
import { JailedFolder } from "./jailed-folder.ts";
import { runCommand } from "./shell-command.ts";
import type { WorkspaceFiles } from "./workspace-files.ts";

/**
 * The files of a folder of this machine, shared by all agents that have it. No path leaves the folder, not through symbolic links either.
 * Nothing is written into `.git`. Throws `InvalidInputError` if the folder does not exist.
 * @param path A path, relative to the working directory, or a `file:` URL.
 */
export function folder(path: string | URL): WorkspaceFiles {
  const files = new JailedFolder(existingFolder(path, "folder()"));
  return {
    name: "folder",
    list: async (below) => await files.list(below),
    read: async (below, { maxBytes }, { signal }) => await files.read(below, maxBytes, signal),
    write: async (below, content) => await files.write(below, content),
    async execute(command, { signal }) {
      const start = await files.realPath(command.folder).catch((error: unknown) => {
        throw new ToolNotStartedError((error as Error).message, { cause: error });
      });
      return await runCommand(command, start, signal);
    },
  };
}

/** The absolute path of a folder that exists. Throws `InvalidInputError`. */
export function existingFolder(path: unknown, of: string): string {
  return reading(of, () => absoluteFolder(path, of));
}

function absoluteFolder(path: unknown, of: string): string {
  const isPath = (typeof path === "string" && path.trim() !== "" && !path.includes("\0")) || path instanceof URL;
  if (!isPath) throw new InvalidInputError(`${of} expects the path of a folder, not ${describeValue(path)}`);
  const absolute = path instanceof URL ? pathOfUrl(path, of) : resolve(path);
  const stats = statSync(absolute, { throwIfNoEntry: false });
  if (stats?.isDirectory()) return absolute;
  const what = stats ? `"${absolute}" is not a folder` : `there is no folder "${absolute}"; create it first`;
  throw new InvalidInputError(`${of}: ${what}`, { details: { path: absolute } });
}

function pathOfUrl(url: URL, of: string): string {
  try {
    return fileURLToPath(url);
  } catch (cause) {
    throw new InvalidInputError(`${of}: "${url.href}" is not the file: URL of a folder`, { cause });
  }
}
