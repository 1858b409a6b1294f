import { fingerprintOf } from "../job/file-fingerprint.ts";

/** How often the files are looked at, in milliseconds. */
const LOOK_MS = 100;
/** With many files, a look may take this share of the time. */
const MOST_SHARE = 0.05;

/**
 * The files of an agent, and whether one of them has changed. It compares their state several times a second instead of listening to the
 * file system, because events of folders are lost on network drives and in containers, and those of a file end when an editor replaces it.
 * Owns: the state in which each file was read. Does not own: who reads them.
 *
 * Invariants
 * 1. A change after a file was read is told, however soon it happens.
 * 2. A change is told once no file has changed for `LOOK_MS`, so that a file is not read half-written.
 */
export class WatchedFiles {
  readonly #read = new Map<string, string>();
  readonly #base: readonly string[];

  /** `base`: files that belong to every process, whether or not they exist. */
  constructor(base: readonly string[]) {
    this.#base = base;
    this.reset();
  }

  /** Forgets what earlier processes read, and takes the present state of the others. */
  reset(): void {
    this.#read.clear();
    for (const path of this.#base) this.#read.set(path, fingerprintOf(path));
  }

  /** Adds a file in the state in which it was read. */
  add(path: string, fingerprint: string): void {
    this.#read.set(path, fingerprint);
  }

  /** Resolves with the path of a file that has changed since it was read; with `undefined` if the signal ends the wait. */
  async changed(signal: AbortSignal): Promise<string | undefined> {
    const { promise, resolve } = Promise.withResolvers<string | undefined>();
    let last = "";
    let timer: ReturnType<typeof setTimeout>;
    const look = (): void => {
      const begun = performance.now();
      const changed = [...this.#read].flatMap(([path, fingerprint]) => {
        const now = fingerprintOf(path);
        return now === fingerprint ? [] : [`${path}\n${now}`];
      });
      const state = changed.join("\n");
      const [first] = changed;
      if (first !== undefined && state === last) resolve(first.split("\n", 1)[0]);
      last = state;
      timer = setTimeout(look, Math.max(LOOK_MS, (performance.now() - begun) / MOST_SHARE));
    };
    timer = setTimeout(look, LOOK_MS);
    const onAbort = (): void => resolve(undefined);
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      return signal.aborted ? undefined : await promise;
    } finally {
      clearTimeout(timer);
      signal.removeEventListener("abort", onAbort);
    }
  }
}
