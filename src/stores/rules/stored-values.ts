import { z } from "zod";
import { flagSchema, textSchema } from "../../base/index.ts";
import type { DeepReadonly } from "../../base/index.ts";
import { limitNameSchema } from "../../budget/index.ts";
import { CorruptRecordError, InvalidInputError } from "../../errors/index.ts";
import {
  accountHolderSchema,
  hashOfDefinition,
  type StoredDefinition,
  storedDefinitionSchema,
  timerSchema,
} from "../../state/index.ts";
import type { Committed } from "./outcomes.ts";

/** Parses stored JSON text. Throws `CorruptRecordError` if it is not valid JSON or does not fit the schema; the record is not changed. */
export function parsed<T>(schema: z.ZodType<T>, text: string, where: string): T {
  return fitting(schema, jsonOf(text, where), where);
}

/** Checks a value from stored JSON. Throws `CorruptRecordError` if it does not fit the schema. */
export function fitting<T>(schema: z.ZodType<T>, value: unknown, where: string): T {
  const result = schema.safeParse(value);
  if (result.success) return result.data;
  const [issue] = result.error.issues;
  throw new CorruptRecordError(
    `${where} does not fit its schema: ${issue?.message} at ${issue?.path.join(".") || "the top"}; it is not changed`,
  );
}

export function jsonOf(text: string, where: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    throw new CorruptRecordError(`${where} is not valid JSON; it is not changed`, { cause: error });
  }
}

/** A stored definition. Also throws `CorruptRecordError` if it does not match its hash. */
export function definitionIn(text: string, hash: string, where: string): StoredDefinition {
  const stored = jsonOf(text, where);
  if (isOfHash(stored, hash)) return parsed(storedDefinitionSchema, text, where);
  throw new CorruptRecordError(`${where} does not match its hash; it is not changed`);
}

/** Whether a definition is unchanged since it was hashed. */
export function isOfHash(stored: unknown, hash: string): boolean {
  if (typeof stored !== "object" || stored === null || !("hash" in stored) || stored.hash !== hash) return false;
  const { hash: _own, ...content } = stored;
  return hashOfDefinition(content) === hash;
}

/** A row as read; its columns must be checked before use. */
export type Row = Readonly<Record<string, unknown>>;

export function integerOf(row: Row, column: string, where: string): number {
  const value = row[column];
  if (typeof value === "number" && Number.isSafeInteger(value)) return value;
  throw corruptColumn(column, "a whole number", where);
}

export function textColumn(row: Row, column: string, where: string): string {
  const value = row[column];
  if (typeof value === "string") return value;
  throw corruptColumn(column, "a text", where);
}

export function textOrNullOf(row: Row, column: string, where: string): string | null {
  return row[column] === null ? null : textColumn(row, column, where);
}

function corruptColumn(column: string, right: string, where: string): CorruptRecordError {
  return new CorruptRecordError(`${where}: the column ${column} is not ${right}; it is not changed`);
}

/** Checks an id that becomes a key. UTF-8 cannot represent half a surrogate pair, so two such ids would become one. */
export function wellFormed(id: string, what: string): string {
  if (id.isWellFormed()) return id;
  throw new InvalidInputError(`${what} ${JSON.stringify(id)} contains half of a surrogate pair; use whole characters`);
}

/** An outcome without its entries, which are in the journal. */
export const storedOutcomeSchema = z.object({
  /** `false` for a batch without entries. */
  hasRow: flagSchema,
  warnings: z.array(
    z.object({
      accountId: textSchema,
      limit: limitNameSchema,
      used: z.number(),
      max: z.number(),
      holder: accountHolderSchema.optional(),
    }),
  ),
  posted: z.array(textSchema),
  timers: z.array(timerSchema),
});
export type StoredOutcome = DeepReadonly<z.infer<typeof storedOutcomeSchema>>;

/** The outcome of most batches, which is not stored. */
export const plainOutcome: StoredOutcome = { hasRow: true, warnings: [], posted: [], timers: [] };

/** The stored form of an outcome; `undefined` for the outcome of most batches. */
export function storedOutcome({ cursor, warnings, posted, timers }: Committed): StoredOutcome | undefined {
  const hasRow = cursor !== 0;
  const isPlain = hasRow && warnings.length === 0 && posted.length === 0 && timers.length === 0;
  return isPlain ? undefined : { hasRow, warnings: [...warnings], posted: [...posted], timers: [...timers] };
}

/** A corrupt timer or schedule never fires, and does not prevent others from firing: it is reported once and not changed. */
export class CorruptTimers {
  readonly #reported = new Set<string>();

  /** `undefined` for a corrupt timer. */
  skipCorrupt<T>(read: () => T): T | undefined {
    try {
      return read();
    } catch (error) {
      return this.report(error);
    }
  }

  /** Rethrows any other error. */
  report(error: unknown): undefined {
    if (!(error instanceof CorruptRecordError)) throw error;
    const { message } = error;
    if (this.#reported.has(message)) return;
    this.#reported.add(message);
    process.emitWarning(`${message}; it never fires`, { code: "TROUPE_CORRUPT_RECORD" });
  }
}
