import type { RolledBackTree } from "./ports.ts";

/** How many trees one warning lists. */
const NAMED = 20;

/** The warning of a store: what has lost writes, what to do about it, and the code of the warning. */
interface RollbackWarning {
  readonly server: string;
  readonly advice: string;
  readonly code: string;
}

/** Reports trees that were rolled back, to listeners and as one warning for all that are found together. */
export class RolledBackTrees {
  readonly #warning: RollbackWarning;
  readonly #listeners = new Set<(found: RolledBackTree) => void>();
  #unreported: RolledBackTree[] = [];

  constructor(warning: RollbackWarning) {
    this.#warning = warning;
  }

  listen(listener: (found: RolledBackTree) => void): () => void {
    const entry = (found: RolledBackTree): void => listener(found);
    this.#listeners.add(entry);
    return () => {
      this.#listeners.delete(entry);
    };
  }

  /** `had` and `found`: versions, which are times in microseconds; 0 for a tree that is gone. */
  report(tree: Pick<RolledBackTree, "tenant" | "rootAgentId">, had: number, found: number): void {
    const { tenant, rootAgentId } = tree;
    const hadAt = Math.floor(had / 1_000);
    const rolledBack = { tenant, rootAgentId, hadAt, foundAt: found === 0 ? null : Math.floor(found / 1_000) };
    if (this.#unreported.push(rolledBack) === 1) setImmediate(() => this.#warn());
    for (const listener of this.#listeners) listener(rolledBack);
  }

  #warn(): void {
    const trees = this.#unreported;
    this.#unreported = [];
    const { server, advice, code } = this.#warning;
    const names = trees.slice(0, NAMED).map(textOf);
    const others = trees.length > NAMED ? `, and ${trees.length - NAMED} more` : "";
    process.emitWarning(
      `${server} has lost acknowledged writes of the trees of ${names.join(", ")}${others}. Turns continue from the remaining data; later effects may be repeated. ${advice}`,
      { code },
    );
  }
}

function textOf({ rootAgentId, hadAt, foundAt }: RolledBackTree): string {
  const until = new Date(hadAt).toISOString();
  if (foundAt === null) return `${rootAgentId} (gone, last changed at ${until})`;
  return `${rootAgentId} (changes after ${new Date(foundAt).toISOString()}, until ${until})`;
}
