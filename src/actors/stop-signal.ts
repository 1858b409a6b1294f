import { toJson } from "../base/index.ts";
import { limitNameSchema } from "../budget/index.ts";
import { AgentStopError } from "../errors/index.ts";
import {
  accountHolderSchema,
  type Json,
  type LimitFigures,
  type Refusal,
  type StopSignal,
  signalOfLimit,
  signalOfRefusal,
} from "../state/index.ts";
import { storedErrorOf } from "./effect.ts";

/** The error of user code that was refused a call for good; whoever catches it names the same account again. */
export function refusedCall(what: string, refusal: Refusal): AgentStopError {
  const signal = signalOfRefusal(refusal);
  const { limit, accountId, used, max, holder } = refusal;
  const details = { isRefusal: true, limit, accountId, used, max, holder: holder?.name, kinship: holder?.kinship };
  return new AgentStopError(`${what} was refused: ${signal?.message ?? refusal.reason}`, { details });
}

/**
 * What `AgentStopError` means for the turn: `stop_requested`, or the limit for which a call was refused. User code makes such
 * errors too, with whatever it likes in them.
 */
export function stopSignalOf(error: AgentStopError, source: string): StopSignal {
  const { message } = storedErrorOf(error);
  const { isRefusal, limit, accountId, ...figures } = detailsOf(error);
  if (isRefusal !== true) return { reason: "stop_requested", message, source };
  const known = limitNameSchema.safeParse(limit);
  if (known.success && typeof accountId === "string") return signalOfLimit(known.data, accountId, figuresOf(figures));
  return { reason: "user_requested", message, source: "user" };
}

function detailsOf({ details }: { readonly details?: unknown }): AgentStopError["details"] {
  const json = toJson(details);
  return json.ok && isRecord(json.json) ? (json.json as AgentStopError["details"]) : {};
}

function isRecord(json: Json): boolean {
  return typeof json === "object" && json !== null && !Array.isArray(json);
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
