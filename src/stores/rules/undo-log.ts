/** Undoes one change. */
type Undo = () => void;

/**
 * Makes changes of plain objects and maps atomic.
 * Owns: the list of changes to undo. Does not own: the objects.
 *
 * Invariants
 * 1. Work that throws changes nothing.
 * 2. Nested work is undone alone if it throws, and together with the outer work if that throws later.
 */
export class UndoLog {
  readonly #undos: Undo[] = [];
  #depth = 0;

  /** Records how to undo a change that is about to be made; only inside `run`. */
  note(undo: Undo): void {
    this.#undos.push(undo);
  }

  run<T>(work: () => T): T {
    const start = this.#undos.length;
    this.#depth += 1;
    try {
      return work();
    } catch (error) {
      while (this.#undos.length > start) this.#undos.pop()?.();
      throw error;
    } finally {
      this.#depth -= 1;
      if (this.#depth === 0) this.#undos.length = 0;
    }
  }

  set<K, V>(map: Map<K, V>, key: K, value: V): void {
    const before = map.get(key);
    const isNew = before === undefined && !map.has(key);
    this.note(isNew ? () => map.delete(key) : () => map.set(key, before as V));
    map.set(key, value);
  }

  /** Deletes these keys; undoing it also restores the order of the map. */
  removeAll<K, V>(map: Map<K, V>, keys: Iterable<K>): void {
    const before = [...map];
    this.note(() => {
      map.clear();
      for (const [key, value] of before) map.set(key, value);
    });
    for (const key of keys) map.delete(key);
  }

  push<T>(list: T[], value: T): void {
    this.note(() => list.pop());
    list.push(value);
  }
}
