import { UnsupportedError } from "../errors/index.ts";

/**
 * A function that loads a package which users install themselves: once, and again after a failure. It rejects with `UnsupportedError`.
 * `message`: what needs the package, and how it is installed.
 */
export function optionalPackage<Loaded>(load: () => Promise<Loaded>, message: string): () => Promise<Loaded> {
  let loaded: Promise<Loaded> | undefined;
  return async () => {
    loaded ??= load();
    try {
      return await loaded;
    } catch (cause) {
      loaded = undefined;
      throw new UnsupportedError(message, { cause });
    }
  };
}
