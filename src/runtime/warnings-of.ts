import { turnAccountId } from "../budget/index.ts";
import type { EntryOf } from "../state/index.ts";
import type { Committed } from "../stores/index.ts";

/**
 * The warnings that a commit calls for, as facts of the open turn, or of the last one: what its last commit has used is told
 * after its end. Of that turn's own account there is nothing to warn any more.
 */
export function warningsOf(
  { warnings }: Committed,
  openTurnId: string | null,
  lastTurnId: string | null,
): Omit<EntryOf<"budget.warning">, "seq" | "at" | "epoch">[] {
  const turnId = openTurnId ?? lastTurnId;
  if (turnId === null) return [];
  const over = openTurnId === null ? turnAccountId(turnId) : undefined;
  return warnings.flatMap((one) => (one.accountId === over ? [] : [{ type: "budget.warning", turnId, ...one }]));
}
