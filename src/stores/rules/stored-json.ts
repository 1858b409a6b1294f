import type { z } from "zod";
import { CorruptRecordError, InvalidInputError } from "../../errors/index.ts";

/** Stored JSON text: plain JSON that fits the schema, or `CorruptRecordError`; the record is left as it is (row S10). */
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
