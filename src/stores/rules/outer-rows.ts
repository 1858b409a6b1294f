import { z } from "zod";
import { accountSchema, holdSchema, waiterSchema } from "../../budget/index.ts";
import { CorruptRecordError } from "../../errors/index.ts";
import { parsed } from "./stored-values.ts";
import type { OuterKind, OuterRows } from "./tables.ts";

const schemas: { readonly [Kind in OuterKind]: z.ZodType<OuterRows[Kind]> } = {
  account: accountSchema,
  hold: holdSchema,
  waiters: z.array(waiterSchema),
};

/** A row above the roots of trees from its text. Throws `CorruptRecordError` if the text is another row, or none. */
export function outerRowIn<Kind extends OuterKind>(kind: Kind, id: string, text: string): OuterRows[Kind] {
  const where = `${kind} ${id} above the roots`;
  const row = parsed(schemas[kind] as z.ZodType<OuterRows[Kind]>, text, where);
  if (!("id" in row) || row.id === id) return row;
  throw new CorruptRecordError(`${where} holds ${row.id}; it is not changed`);
}
