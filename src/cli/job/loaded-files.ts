import * as nodeModule from "node:module";
import { fileURLToPath } from "node:url";
import { packageFile } from "../own-files.ts";
import { fingerprintOf } from "./file-fingerprint.ts";

/** A file that an agent file consists of, and its state just before it was read. */
export interface LoadedFile {
  readonly path: string;
  readonly fingerprint: string;
}

type FileListener = (file: LoadedFile) => void;

/** This package's own code, which is loaded beside the agent file. */
const ownFolders = ["src/", "dist/"].map((folder) => packageFile(folder).href);

/**
 * Tells the listener each file that is loaded from now on, outside of `node_modules` and of this package: modules, JSON, and the path of a
 * relative import that does not exist. Returns false on Node before 22.15, which cannot tell them.
 */
export function watchLoading(listener: FileListener): boolean {
  if (!("registerHooks" in nodeModule)) return false;
  const tell = (url: string): void => {
    if (!url.startsWith("file:") || url.includes("/node_modules/")) return;
    if (ownFolders.some((folder) => url.startsWith(folder))) return;
    const path = fileURLToPath(url);
    listener({ path, fingerprint: fingerprintOf(path) });
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
