/**
 * An immutable map that only grows, in the order in which its keys were added. A change costs the same however many keys
 * there are and leaves older versions as they were, so that keeping a version costs nothing: the entries are the leaves of
 * a tree of 32 branches, of which a change copies one path.
 *
 * Invariants
 * 1. A version sees the first `size` keys of an index that it shares with later versions; a key never moves in it.
 * 2. A version that adds another key than a later version did gets an index of its own.
 */
export class PersistentMap<Value> {
  readonly size: number;
  readonly #index: Index;
  readonly #root: Tree<Value>;
  /** Bits of a position above those that choose a leaf's value. */
  readonly #shift: number;
  #record: Readonly<Record<string, Value>> | undefined;

  private constructor(parts: Parts<Value>) {
    this.size = parts.size;
    this.#index = parts.index;
    this.#root = parts.root;
    this.#shift = parts.shift;
  }

  static empty<Value>(): PersistentMap<Value> {
    return new PersistentMap({ size: 0, index: { keys: [], positions: new Map() }, root: { values: [] }, shift: 0 });
  }

  get(key: string): Value | undefined {
    const position = this.#positionOf(key);
    if (position === undefined) return undefined;
    let tree = this.#root;
    for (let shift = this.#shift; "branches" in tree; shift -= BITS) {
      const branch = tree.branches[(position >>> shift) & MASK];
      if (branch === undefined) return undefined;
      tree = branch;
    }
    return tree.values[position & MASK];
  }

  with(key: string, value: Value): PersistentMap<Value> {
    const position = this.#positionOf(key);
    const parts = { size: this.size, index: this.#index, root: this.#root, shift: this.#shift };
    if (position !== undefined) return new PersistentMap({ ...parts, root: put(parts, position, value) });
    const isFull = this.size === WIDTH << this.#shift;
    const grown = isFull ? { root: { branches: [this.#root] }, shift: this.#shift + BITS } : parts;
    const root = put(grown, this.size, value);
    return new PersistentMap({ size: this.size + 1, index: this.#indexWith(key), root, shift: grown.shift });
  }

  *entries(): Generator<[string, Value]> {
    let position = 0;
    for (const value of valuesIn(this.#root)) {
      const key = this.#index.keys[position];
      if (key !== undefined) yield [key, value];
      position += 1;
    }
  }

  values(): Generator<Value> {
    return valuesIn(this.#root);
  }

  /** All entries as a frozen object, made at the first call. */
  record(): Readonly<Record<string, Value>> {
    this.#record ??= Object.freeze(Object.fromEntries(this.entries()));
    return this.#record;
  }

  #positionOf(key: string): number | undefined {
    const position = this.#index.positions.get(key);
    return position !== undefined && position < this.size ? position : undefined;
  }

  #indexWith(key: string): Index {
    const { keys, positions } = this.#index;
    if (keys[this.size] === key) return this.#index;
    if (keys.length === this.size) {
      keys.push(key);
      positions.set(key, this.size);
      return this.#index;
    }
    const own = [...keys.slice(0, this.size), key];
    return { keys: own, positions: new Map(own.map((one, position) => [one, position])) };
  }
}

const BITS = 5;
const WIDTH = 1 << BITS;
const MASK = WIDTH - 1;

interface Index {
  readonly keys: string[];
  readonly positions: Map<string, number>;
}

interface Parts<Value> {
  readonly size: number;
  readonly index: Index;
  readonly root: Tree<Value>;
  readonly shift: number;
}

type Tree<Value> = { readonly values: readonly Value[] } | { readonly branches: readonly Tree<Value>[] };

function put<Value>(
  { root, shift }: Pick<Parts<Value>, "root" | "shift">,
  position: number,
  value: Value,
): Tree<Value> {
  if (shift === 0) {
    const values = "values" in root ? [...root.values] : [];
    values[position & MASK] = value;
    return { values };
  }
  const branches = "branches" in root ? [...root.branches] : [];
  const at = (position >>> shift) & MASK;
  branches[at] = put({ root: branches[at] ?? { values: [] }, shift: shift - BITS }, position, value);
  return { branches };
}

function* valuesIn<Value>(tree: Tree<Value>): Generator<Value> {
  if ("values" in tree) yield* tree.values;
  else for (const branch of tree.branches) yield* valuesIn(branch);
}
