import { z } from "zod";
import { textOrNullSchema, textSchema } from "../base/index.ts";

const countSchema = z.int().nonnegative();

/** The number of deleted rows, by kind. */
export const deletedCountsSchema = z.object({
  /** Agents of the tree, with the root. */
  agents: countSchema,
  /** Turns of the root. */
  turns: countSchema,
  /** Entries of all journals. */
  entries: countSchema,
  /** Messages of all conversations. */
  messages: countSchema,
  /** Versions of artifacts. */
  artifacts: countSchema,
  /** Open and decided requests. */
  requests: countSchema,
});
export type DeletedCounts = z.output<typeof deletedCountsSchema>;

/** The line that stays of a deleted tree. It contains no texts, names or ids of the tree, only hashes, times and sums. */
export const deletionSchema = z.object({
  tenant: textSchema,
  /** SHA-256 of the tenant and the id of the root agent, as 64 hexadecimal digits. */
  idHash: textSchema,
  /** Milliseconds since the epoch. */
  deletedAt: z.number(),
  /** Who asked for the deletion. */
  by: textSchema,
  /** `request`: a caller asked for it; `retention`: it was older than the retention allows. */
  reason: z.enum(["request", "retention"]),
  counts: deletedCountsSchema,
  /** What the tree had used. */
  used: z.object({ tokens: countSchema, costMicros: countSchema, toolCalls: countSchema }),
  /** The head of the tree's hash chain; `null` if it was unknown, because messages had been deleted before. */
  head: textOrNullSchema,
  /** The hashes of all links of the chain, 32 bytes each, in base64; `null` if the head is. */
  links: textOrNullSchema,
  /** Present until the deletion is finished: what still has to be deleted outside of the tree. */
  pending: z
    .object({
      rootAgentId: textSchema,
      agentIds: z.array(textSchema),
      /** The process that began it also deletes copies in stores of the user's own, so that only a process with these stores finishes it. */
      hasCopies: z.literal(true).optional(),
      /** Definitions of the tree whose plugins or tools keep data of their own: only a process that knows them finishes it. */
      keepers: z.array(textSchema).optional(),
      /** The owner whose data is deleted with that of the agents. */
      ownerId: textSchema.optional(),
    })
    .optional(),
});
export type Deletion = z.output<typeof deletionSchema>;
