import type { SQLOutputValue } from "node:sqlite";
import { CorruptRecordError } from "../../errors/index.ts";

export { jsonOf, parsed, wellFormed } from "../rules/stored-json.ts";

/** A row as it comes from disk: nothing about it is known until it was looked at (row S10). */
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
