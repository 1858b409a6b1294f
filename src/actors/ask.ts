import {
  costOf as pricedCost,
  DEFAULT_OUTPUT_TOKENS,
  MINIMUM_OUTPUT_TOKENS,
  type Price,
  type Reservation,
  type ReservationAsk,
  type Settlement,
} from "../budget/index.ts";
import { InvalidInputError, ModelError } from "../errors/index.ts";
import type { LanguageModel } from "../model/index.ts";
import type { ModelRequest, Usage } from "../state/index.ts";
import type { Host } from "./host.ts";

/** What a model call asks its accounts for, before it is made. */
export async function reservationAskOf(
  host: Host,
  call: Pick<ReservationAsk, "key" | "accountId" | "opensStep" | "finalAnswer">,
  model: LanguageModel,
  request: ModelRequest,
): Promise<ReservationAsk> {
  const { definition, identity } = host;
  const outputTokens = request.maxOutputTokens ?? definition.maxOutputTokens ?? DEFAULT_OUTPUT_TOKENS;
  const counted = model.countPromptTokens(request);
  const promptTokens = typeof counted === "number" ? counted : await counted;
  return {
    ...call,
    agentId: identity.agentId,
    promptTokens,
    promptBound: model.boundPromptTokens?.(request) ?? promptTokens,
    outputTokens,
    minimumOutputTokens: Math.min(outputTokens, MINIMUM_OUTPUT_TOKENS),
    price: definition.price,
    model: model.name,
  };
}

/** Refuses a call whose price nobody knows where a limit on cost binds (design, Budgets). */
export function assertPriced(host: Host, limitsCost: boolean): void {
  const { definition } = host;
  if (!limitsCost || definition.price) return;
  throw new InvalidInputError(
    `the price of model "${definition.model.name}" is not known, and maxCost is set: give agent "${definition.name}" a price, for instance price: { inputPerMillion: 0.25, outputPerMillion: 2 }`,
  );
}

/** The bound is sent only where one was asked for, or where a limit stands behind the reservation. */
export function boundedRequest(request: ModelRequest, asked: number | undefined, granted: Reservation): ModelRequest {
  if (asked === undefined && granted.isBound !== true) return request;
  return { ...request, maxOutputTokens: granted.outputTokens };
}

/** The settlement by what the provider reports, or by what was counted here. */
export function settlementOf(reservation: Reservation, usage: Usage, price: Price | null): Settlement {
  return {
    reservation,
    tokens: usage.inputTokens + usage.outputTokens,
    costMicros: costOf(usage, price) ?? 0,
    usage,
    unconfirmed: false,
  };
}

/** The settlement of a call nobody knows the end of: all that was reserved counts as used. */
export function unconfirmedSettlement(reservation: Reservation): Settlement {
  const { tokens, costMicros } = reservation;
  return { reservation, tokens, costMicros, usage: null, unconfirmed: true };
}

/**
 * What a failed call may have cost: nothing when the provider refused it or never got it, the prompt and what had
 * arrived when a stream was cut, all that was reserved when nobody knows.
 */
export function billOf(
  error: unknown,
  { promptTokens, price }: ReservationAsk,
  reservation: Reservation,
): { usage: Usage | null; settlement: Settlement } {
  const known = error instanceof ModelError ? error : undefined;
  if (known && (!known.mayHaveBeenSent || known.status !== undefined)) {
    return { usage: null, settlement: emptySettlement(reservation) };
  }
  if (known?.partialOutputTokens === undefined) return { usage: null, settlement: unconfirmedSettlement(reservation) };
  const usage: Usage = { inputTokens: promptTokens, outputTokens: known.partialOutputTokens, estimated: true };
  return { usage, settlement: settlementOf(reservation, usage, price) };
}

/** The settlement of a call that surely never reached the provider. */
function emptySettlement(reservation: Reservation): Settlement {
  return { reservation, tokens: 0, costMicros: 0, usage: null, unconfirmed: false };
}

/** Micro-dollars; null when the price is not known. */
export function costOf(usage: Usage, price: Price | null): number | null {
  return price ? pricedCost(usage, price) : null;
}
