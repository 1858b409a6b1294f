import type { KnownTrees } from "./redis-cache.ts";
import type { TreeKeys } from "./redis-keys.ts";
import { type LineContext, TreeLine } from "./redis-tree-line.ts";

/** Rows of all trees that are kept in this process, about; what is past that is read anew when it is needed. */
const CACHED_ROWS = 50_000;
/** How many pieces of work come between two looks at how much is kept. */
const WORKS_BETWEEN_LOOKS = 256;

/** The transaction lines of a process. Owns: which trees it knows, and how much of them. Does not own: what they do. */
export class TreeLines implements KnownTrees {
  readonly #lines = new Map<string, TreeLine>();
  readonly #onNew: (line: TreeLine) => void;
  #works = 0;

  constructor(onNew: (line: TreeLine) => void) {
    this.#onNew = onNew;
  }

  /** The line of a tree, for one more piece of work. */
  of(tree: TreeKeys, context: LineContext): TreeLine {
    this.#works += 1;
    if (this.#works % WORKS_BETWEEN_LOOKS === 0) this.#forgetSome();
    const known = this.#lines.get(tree.tag);
    const line = known ?? new TreeLine(tree, context);
    if (!known) this.#onNew(line);
    // Those that were used last are last.
    this.#lines.delete(tree.tag);
    this.#lines.set(tree.tag, line);
    return line;
  }

  /** A row that is older than what is known costs an attempt more, and no more than that. */
  note({ tag }: TreeKeys, field: string, stored: string | undefined): void {
    this.#lines.get(tag)?.cache.note(field, stored);
  }

  isDoubtful({ tag }: TreeKeys): boolean {
    return this.#lines.get(tag)?.isDoubtful ?? false;
  }

  /** Another process has written to the tree. */
  doubt(tag: string): void {
    const line = this.#lines.get(tag);
    if (line) line.isDoubtful = true;
  }

  all(): readonly TreeLine[] {
    return [...this.#lines.values()];
  }

  async idle(): Promise<void> {
    await Promise.all(this.all().map((line) => line.idle()));
  }

  #forgetSome(): void {
    let size = 0;
    for (const line of this.all()) size += line.cache.size;
    for (const [tag, line] of this.#lines) {
      if (size <= CACHED_ROWS) return;
      if (!line.isIdle) continue;
      size -= line.cache.size;
      this.#lines.delete(tag);
    }
  }
}
