import type { SQLOutputValue } from "node:sqlite";
import { CorruptRecordError } from "../../errors/index.ts";
import type { AgentRecord } from "../../state/index.ts";
import type { Head } from "../rules/tables.ts";

export { jsonOf, parsed, wellFormed } from "../rules/stored-json.ts";

/** A row as it was read; its columns must be checked before use (row S10). */
export type Row = Readonly<Record<string, SQLOutputValue>>;

export function integerOf(row: Row, column: string, where: string): number {
  const value = row[column];
  if (typeof value === "number" && Number.isSafeInteger(value)) return value;
  throw corruptColumn(column, "a whole number", where);
}

export function textOf(row: Row, column: string, where: string): string {
  const value = row[column];
  if (typeof value === "string") return value;
  throw corruptColumn(column, "a text", where);
}

export function textOrNullOf(row: Row, column: string, where: string): string | null {
  return row[column] === null ? null : textOf(row, column, where);
}

function corruptColumn(column: string, right: string, where: string): CorruptRecordError {
  return new CorruptRecordError(`${where}: the column ${column} does not hold ${right}; it is left as it is`);
}

/** A value with the text it was read from or written as. */
interface Cached<T> {
  /** The generation in which it was last known to match the file. */
  generation: number;
  text: string;
  value: T;
}

/** A cache by tenant and id, so that keys cannot collide. When it is full it is emptied. */
export class KeyedCache<T> {
  readonly #tenants = new Map<string, Map<string, T>>();
  readonly #capacity: number;
  #size = 0;

  constructor(capacity: number) {
    this.#capacity = capacity;
  }

  get(tenant: string, id: string): T | undefined {
    return this.#tenants.get(tenant)?.get(id);
  }

  set(tenant: string, id: string, value: T): void {
    const isNew = this.get(tenant, id) === undefined;
    if (isNew && this.#size >= this.#capacity) this.clear();
    let values = this.#tenants.get(tenant);
    if (!values) {
      values = new Map();
      this.#tenants.set(tenant, values);
    }
    values.set(id, value);
    if (isNew) this.#size += 1;
  }

  clear(): void {
    this.#tenants.clear();
    this.#size = 0;
  }
}

/** A cached head, with the cursor of the agent's last row in the journal (0: none). */
export interface KeptHead {
  readonly generation: number;
  readonly value: Head;
  readonly cursor: number;
}

/**
 * The cached state of an agent between transactions. An agent that was removed and created again may have another key.
 */
export interface AgentSlot {
  readonly id: number;
  readonly tree: number;
  readonly record: Cached<AgentRecord>;
  head: KeptHead | undefined;
}
