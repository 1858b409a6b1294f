import * as nodeModule from "node:module";
import { fileURLToPath, pathToFileURL } from "node:url";
import { packageFile } from "../own-files.ts";
import { fingerprintOf } from "./file-fingerprint.ts";

/** A file that an agent file consists of, and its state just before it was read. */
export interface LoadedFile {
  readonly path: string;
  readonly fingerprint: string;
}

/** This package's own code, which is loaded beside the agent file. */
const ownFolders = ["src/", "dist/"].map((folder) => packageFile(folder).href);

/** Whether a file is the person's, not of a package and not this package's own code. */
export function isPersonsFile(path: string): boolean {
  const { href } = pathToFileURL(path);
  return !href.includes("/node_modules/") && !ownFolders.some((folder) => href.startsWith(folder));
}

/**
 * Calls the listener with each of the person's files that is loaded from now on: modules, JSON, and the path of a relative import that
 * does not exist. Returns false on Node before 22.15, which cannot report them.
 */
export function watchLoading(listener: (file: LoadedFile) => void): boolean {
  if (!("registerHooks" in nodeModule)) return false;
  const tell = (url: string): void => {
    if (!url.startsWith("file:")) return;
    const path = fileURLToPath(url);
    if (isPersonsFile(path)) listener({ path, fingerprint: fingerprintOf(path) });
  };
  nodeModule.registerHooks({
    resolve(specifier, context, nextResolve) {
      try {
        return nextResolve(specifier, context);
      } catch (error) {
        // The missing file may be written next.
        const { parentURL } = context;
        if (/^\.{0,2}\//.test(specifier) && parentURL !== undefined) tell(new URL(specifier, parentURL).href);
        throw error;
      }
    },
    load(url, context, nextLoad) {
      tell(url);
      return nextLoad(url, context);
    },
  });
  return true;
}
