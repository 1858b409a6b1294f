import type { SQLOutputValue } from "node:sqlite";
import type { z } from "zod";
import { CorruptRecordError, InvalidInputError } from "../errors/index.ts";

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

/** A JSON column: plain JSON that fits the schema, or `CorruptRecordError`; the row is left as it is. */
export function parsed<T>(schema: z.ZodType<T>, text: string, where: string): T {
  const result = schema.safeParse(jsonOf(text, where));
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new CorruptRecordError(
    `${where} does not fit its schema: ${issue?.message} at ${issue?.path.join(".") || "the top"}; it is left as it is`,
  );
}

export function jsonOf(text: string, where: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new CorruptRecordError(`${where} is no JSON; it is left as it is`, { cause: error });
  }
}

/** An id that is a key. UTF-8 has no form for half a surrogate pair, so that two such ids would become one. */
export function wellFormed(id: string, what: string): string {
  if (id.isWellFormed()) return id;
  throw new InvalidInputError(`${what} ${JSON.stringify(id)} holds half of a surrogate pair; use whole characters`);
}

function corruptColumn(column: string, right: string, where: string): CorruptRecordError {
  return new CorruptRecordError(`${where}: the column ${column} does not hold ${right}; it is left as it is`);
}
