import {
  bindingOf,
  costOf as pricedCost,
  DEFAULT_OUTPUT_TOKENS,
  MINIMUM_OUTPUT_TOKENS,
  type Price,
  type Reservation,
  type ReservationAsk,
  type Settlement,
} from "../budget/index.ts";
import { InvalidInputError, ModelError } from "../errors/index.ts";
import { examplePrice, MOST_TOKENS } from "../model/index.ts";
import type { ModelRequest, TurnState, Usage } from "../state/index.ts";
import type { Host } from "./host.ts";
import { measurePrompt } from "./measure-prompt.ts";

export interface Asking extends Pick<ReservationAsk, "key" | "opensStep" | "finalAnswer"> {
  readonly turn: TurnState;
  readonly signal: AbortSignal;
}

/**
 * What a model call asks its accounts for, before it is made.
 * Throws `InvalidInputError` where a limit on cost binds and nobody knows what the model costs.
 */
export async function reservationAskOf(
  host: Host,
  request: ModelRequest,
  { turn, signal, ...call }: Asking,
): Promise<ReservationAsk> {
  const { definition, identity } = host;
  const { turnId, accountId } = turn;
  const binding = bindingOf(turn.limits, identity.binding);
  const asked = request.maxOutputTokens ?? definition.maxOutputTokens ?? DEFAULT_OUTPUT_TOKENS;
  const outputTokens = Math.min(asked, MOST_TOKENS);
  const price = await priceFor(host, binding.maxCostMicros !== undefined);
  const prompt = await measurePrompt(host, request, { turnId, key: call.key, binding, price, signal });
  return {
    ...call,
    ...prompt,
    accountId,
    agentId: identity.agentId,
    outputTokens,
    minimumOutputTokens: Math.min(outputTokens, MINIMUM_OUTPUT_TOKENS),
    price,
    model: definition.model.name,
  };
}

/** The definition's price, or what the runtime knows; null: unknown, which is refused where a limit on cost binds. */
async function priceFor({ definition, prices, clock }: Host, binds: boolean): Promise<Price | null> {
  const { model } = definition;
  const price = definition.price ?? (await prices.priceOf(model, binds, clock.now()));
  if (price || !binds) return price;
  throw new InvalidInputError(
    `the price of model "${model.name}" is not known (provider "${model.provider}"), and maxCost is set: give one with ` +
      `createRuntime({ prices: { "${model.name}": ${examplePrice} } }), or to agent "${definition.name}" alone with ` +
      `defineAgent({ price: ${examplePrice} }), in dollars per million tokens`,
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
  const inputTokens = known.partialInputTokens ?? promptTokens;
  const usage: Usage = { inputTokens, outputTokens: known.partialOutputTokens, estimated: true };
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
