import { z } from "zod";
import type { DeepReadonly } from "../../base/index.ts";
import { limitNameSchema } from "../../budget/index.ts";
import { accountHolderSchema, timerSchema } from "../../state/index.ts";
import type { Committed } from "./outcomes.ts";

/** An outcome without its entries, which the journal holds. */
export const storedOutcomeSchema = z.object({
  /** False for a batch without entries. */
  hasRow: z.boolean(),
  warnings: z.array(
    z.object({
      accountId: z.string(),
      limit: limitNameSchema,
      used: z.number(),
      max: z.number(),
      holder: accountHolderSchema.optional(),
    }),
  ),
  posted: z.array(z.string()),
  timers: z.array(timerSchema),
});
export type StoredOutcome = DeepReadonly<z.infer<typeof storedOutcomeSchema>>;

/** What most batches are answered; not stored. */
export const plainOutcome: StoredOutcome = { hasRow: true, warnings: [], posted: [], timers: [] };

/** What is stored of an outcome; undefined for what most batches are answered. */
export function storedOutcome({ cursor, warnings, posted, timers }: Committed): StoredOutcome | undefined {
  const hasRow = cursor !== 0;
  const isPlain = hasRow && warnings.length === 0 && posted.length === 0 && timers.length === 0;
  return isPlain ? undefined : { hasRow, warnings: [...warnings], posted: [...posted], timers: [...timers] };
}
