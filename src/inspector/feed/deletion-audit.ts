import { firstHead, headAfter, optionsOf } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import { type Deletion, deletionSchema } from "../../state/index.ts";
import { deletedIdHash, nodeSha256 } from "../../stores/index.ts";
import { headRule } from "./audits.ts";

/**
 * What a deletion proves. `verified`: the deleted run had the given head; `consistent`: the hashes fit together, and no head was given;
 * `partial`: hashes of messages were unknown at the deletion, so no head can be compared; `broken`: see `problem`.
 */
export interface DeletionAudit {
  /** See the description of the audit. */
  readonly verdict: "verified" | "consistent" | "partial" | "broken";
  /** What does not fit; `null` if nothing. */
  readonly problem: string | null;
  /** The head of the run when it was deleted; `null` if it is unknown. */
  readonly head: string | null;
  /** The number of entries of the deleted run. */
  readonly entries: number;
  /** How many entries the given head covers; `null` without a head, or if the run did not have it. */
  readonly covered: number | null;
}

const BYTES = 32;

/**
 * Verifies the line that stays of a deleted run: heads of its earlier audits still lead to the head that it had.
 * @throws InvalidInputError unless the value is a deletion, and for wrong options.
 */
export function verifyDeletion(
  deletion: Deletion,
  agentId: string,
  given?: { readonly head?: string | undefined },
): DeletionAudit {
  const { head: expected } = optionsOf<{ readonly head?: string | undefined }>(given, "verifyDeletion()", {
    rules: { head: headRule },
  });
  const parsed = deletionSchema.safeParse(deletion);
  if (!parsed.success) throw new InvalidInputError("invalid deletion; expected the one of stores.deletion()");
  const { tenant, idHash, head, links, counts } = parsed.data;
  const base = { head, entries: counts.entries, covered: null };
  if (idHash !== deletedIdHash(tenant, agentId)) {
    return { ...base, verdict: "broken", problem: `it is not the deletion of agent "${agentId}"` };
  }
  if (head === null || links === null) return { ...base, verdict: "partial", problem: null };
  const bytes = Buffer.from(links, "base64");
  let reached: string | null = firstHead(agentId, nodeSha256);
  let covered: number | null = reached === expected ? 0 : null;
  for (let at = 0; at + BYTES <= bytes.length; at += BYTES) {
    reached = headAfter(reached, bytes.subarray(at, at + BYTES).toString("hex"), nodeSha256);
    if (reached === expected) covered = at / BYTES + 1;
  }
  const found = { ...base, entries: bytes.length / BYTES, covered };
  if (reached !== head)
    return { ...found, verdict: "broken", problem: "the hashes of its entries do not lead to its head" };
  if (expected !== undefined && covered === null) {
    return { ...found, verdict: "broken", problem: "the deleted run did not have the given head" };
  }
  return { ...found, verdict: expected === undefined ? "consistent" : "verified", problem: null };
}
