import type { LimitName } from "../budget/index.ts";
import type { EntryOf } from "./entry.ts";
import type { LimitFigures } from "./entry-parts.ts";
import { limitText } from "./limit-reached.ts";
import { isFailure, type StopReason, type StopSignal } from "./stop.ts";

const reasonOfLimit: Record<LimitName, StopReason> = {
  maxSteps: "steps_limit",
  maxTreeSteps: "steps_limit",
  maxToolCalls: "steps_limit",
  maxTreeToolCalls: "steps_limit",
  maxTokens: "token_limit",
  maxCostMicros: "cost_limit",
  maxActiveMs: "time_limit",
  deadlineAt: "time_limit",
};

/** The signal of a limit: its message contains the account's holder, the account, and the used and the allowed amount. */
export function signalOfLimit(limit: LimitName, accountId: string, figures: LimitFigures = {}): StopSignal {
  const { used, max, holder, renewsAt } = figures;
  return {
    reason: reasonOfLimit[limit],
    message: limitText(limit, accountId, { used, max, holder, renewsAt }),
    source: "budget",
    accountId,
    limit,
    ...(used === undefined ? {} : { used }),
    ...(max === undefined ? {} : { max }),
  };
}

/** The stop signal of a refused intent; `undefined` if the intent only has to wait. */
export function signalOfRefusal(entry: EntryOf<"intent.refused">): StopSignal | undefined {
  if (entry.reason === "budget" && entry.limit && entry.accountId) {
    return signalOfLimit(entry.limit, entry.accountId, entry);
  }
  if (entry.reason === "unpriced") {
    const { message = "the price of the model is not known", accountId = "" } = entry;
    return { reason: "error", message, source: "budget", accountId, limit: "maxCostMicros" };
  }
  if (entry.reason === "aborted") {
    const message = entry.message ?? `agent ${entry.agentId} was aborted`;
    return { reason: "user_requested", message, source: "user" };
  }
  return undefined;
}

/** Whether a signal interrupts running work; the others take effect at the end of the step. */
export function cutsNow(signal: StopSignal): boolean {
  return signal.reason === "user_requested" || signal.reason === "time_limit" || isFailure(signal.reason);
}
