import type { AgentRequest, Json, RequestVerdict } from "../../state/index.ts";
import type { RequestFilter } from "../../stores/index.ts";

/** Who wants to decide what; for `RuntimeOptions.mayDecide`. */
export interface DecisionAttempt {
  readonly request: AgentRequest;
  /** As the caller named them; null: nobody. */
  readonly by: string | null;
  readonly verdict: RequestVerdict;
}

/** A decision on a request. */
export interface Decide {
  readonly verdict: Exclude<RequestVerdict, "expired">;
  /** Who decides: kept for audit, and asked of `mayDecide`. */
  readonly by?: string | undefined;
  /** Why; with `rejected` the model is told. */
  readonly reason?: string | undefined;
  /** For `edited`: takes the place of the model's arguments, and is validated as they were. */
  readonly arguments?: Json | undefined;
  /** For `answered`: what the caller's tool gave, or the person said. Texts go as they are, other values as JSON. */
  readonly result?: unknown;
  /** For `answered`: the tool failed, and `result` says why. */
  readonly isError?: boolean | undefined;
  /** Hash of the arguments that were shown to whoever decides; a request about other ones is not decided. */
  readonly argumentsHash?: string | undefined;
}

/** Which requests: open ones where nothing else is said. */
export type RequestListOptions = Omit<RequestFilter, "tenant">;
