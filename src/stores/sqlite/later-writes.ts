import type { Write } from "./sqlite-statement.ts";

/** How long writes wait, in milliseconds. */
const DELAY_MS = 100;

/** Writes that are to be run later, in their order, the rows that they change, and when it is time. */
export class LaterWrites {
  readonly #list: Write[] = [];
  readonly #rows = new Set<string>();
  readonly #onTime: () => void;
  #timer: NodeJS.Timeout | undefined;

  constructor(onTime: () => void) {
    this.#onTime = onTime;
  }

  get list(): readonly Write[] {
    return this.#list;
  }

  get length(): number {
    return this.#list.length;
  }

  push(write: Write): void {
    this.#list.push(write);
  }

  noteRow(name: string): void {
    this.#rows.add(name);
  }

  /** Whether one of the writes may change the row of this name. */
  hasRow(name: string): boolean {
    return this.#rows.has(name);
  }

  /** Forgets those that came last; what is known of rows stays, since more of them cost a read and no more. */
  cutTo(length: number): void {
    this.#list.length = length;
  }

  clear(): void {
    this.#list.length = 0;
    this.#rows.clear();
    clearTimeout(this.#timer);
    this.#timer = undefined;
  }

  /** Says when it is time, unless they are cleared before. Keeps no process alive. */
  runSoon(): void {
    if (this.#timer !== undefined) return;
    this.#timer = setTimeout(() => {
      this.#timer = undefined;
      this.#onTime();
    }, DELAY_MS);
    this.#timer.unref();
  }

  /** Runs the first `count`. They stay. */
  run(count = this.#list.length): void {
    for (const { statement, values } of withoutOverwritten(this.#list, count)) statement.runNow(values);
  }
}

/** The first `count` writes, but for those whose every column is set again by later ones. */
export function withoutOverwritten(writes: readonly Write[], count: number): Write[] {
  const kept: Write[] = [];
  const setLater = new Map<string, number>();
  for (const write of writes.slice(0, count).toReversed()) {
    const { row } = write.statement;
    if (row) {
      const name = `${row.table} ${write.values.at(-1)}`;
      const known = setLater.get(name) ?? 0;
      if ((row.sets & ~known) === 0) continue;
      setLater.set(name, known | row.sets);
    }
    kept.push(write);
  }
  return kept.toReversed();
}
