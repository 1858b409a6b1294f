import type { LimitName } from "../budget/index.ts";
import { AgentStopError } from "../errors/index.ts";
import {
  accountHolderSchema,
  type LimitFigures,
  type Refusal,
  type StopSignal,
  signalOfLimit,
  signalOfRefusal,
} from "../state/index.ts";

/** The error of user code that was refused a call for good; whoever catches it names the same account again. */
export function refusedCall(what: string, refusal: Refusal): AgentStopError {
  const signal = signalOfRefusal(refusal);
  const { limit, accountId, used, max, holder } = refusal;
  const details = { isRefusal: true, limit, accountId, used, max, holder: holder?.name, kinship: holder?.kinship };
  return new AgentStopError(`${what} was refused: ${signal?.message ?? refusal.reason}`, { details });
}

/** What `AgentStopError` means for the turn: `stop_requested`, or the limit for which a call was refused. */
export function stopSignalOf(error: AgentStopError, source: string): StopSignal {
  const { isRefusal, limit, accountId } = error.details;
  if (isRefusal !== true) return { reason: "stop_requested", message: error.message, source };
  if (typeof limit === "string" && typeof accountId === "string") {
    return signalOfLimit(limit as LimitName, accountId, figuresOf(error.details));
  }
  return { reason: "user_requested", message: error.message, source: "user" };
}

/** What `refusedCall` has put beside limit and account. */
function figuresOf({ used, max, holder: name, kinship }: AgentStopError["details"]): LimitFigures {
  const holder = accountHolderSchema.safeParse({ name, kinship });
  return {
    ...(typeof used === "number" ? { used } : {}),
    ...(typeof max === "number" ? { max } : {}),
    ...(holder.success ? { holder: holder.data } : {}),
  };
}
