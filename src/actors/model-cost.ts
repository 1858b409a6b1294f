import { describeValue, workingOn } from "../base/index.ts";
import {
  type Binding,
  bindingOf,
  bindsAmounts,
  costOf,
  DEFAULT_OUTPUT_TOKENS,
  hasLongWriteRate,
  MINIMUM_OUTPUT_TOKENS,
  type Price,
  type Reservation,
  type ReservationAsk,
  type Settlement,
} from "../budget/index.ts";
import { InvalidInputError, ModelError } from "../errors/index.ts";
import {
  calledModels,
  compositionOf,
  examplePrice,
  type LanguageModel,
  type MeasuredPrompt,
  MOST_TOKENS,
  promptByteBound,
} from "../model/index.ts";
import type { ModelRequest, ModelResponse, TurnState, Usage } from "../state/index.ts";
import { assertHostedAllowed } from "./fork-rule.ts";
import { appendWarnings, type Host } from "./host.ts";
import { inTime } from "./in-time.ts";
import { storedErrorOf } from "./stored-error.ts";

interface Asking extends Pick<ReservationAsk, "key" | "opensStep" | "finalAnswer"> {
  readonly turn: TurnState;
  /** The model that is called. */
  readonly model: LanguageModel;
  readonly signal: AbortSignal;
}

/**
 * The reservation that a model call requests from its accounts.
 * Throws `InvalidInputError` if a limit on cost applies and the model's price is unknown.
 */
export async function reservationAskOf(
  host: Host,
  request: ModelRequest,
  { turn, model, signal, ...call }: Asking,
): Promise<ReservationAsk> {
  const { definition, identity } = host;
  assertHostedAllowed(identity, model);
  const { turnId, accountId } = turn;
  const binding = wholeBinding(host, turn);
  const bound = request.maxOutputTokens ?? definition.maxOutputTokens;
  const asked = Math.min(bound ?? DEFAULT_OUTPUT_TOKENS, MOST_TOKENS);
  const writesLongCache = mayWriteLong(model, request);
  const price = await priceFor(host, model, { request, binds: binding.maxCostMicros !== undefined });
  // Without a bound the server uses the rest of its window.
  const window = bound !== undefined || bindsAmounts(binding) ? model.contextWindow : undefined;
  const measuring = { turnId, model, key: call.key, binding, outputTokens: asked, window, signal };
  const prompt = await measurePrompt(host, request, measuring);
  const isClamped = window !== undefined && isCounted(prompt);
  const outputTokens = isClamped ? Math.min(asked, roomIn(window, prompt.promptTokens)) : asked;
  return {
    ...call,
    ...prompt,
    accountId,
    agentId: identity.agentId,
    outputTokens,
    minimumOutputTokens: Math.min(outputTokens, MINIMUM_OUTPUT_TOKENS),
    price,
    ...(writesLongCache ? { writesLongCache } : {}),
    model: model.name,
  };
}

/** The smallest limits of all accounts on which the turn spends. */
function wholeBinding(host: Host, { limits }: Pick<TurnState, "limits">): Binding {
  const { maxTokens, maxCostMicros } = host.outerBinding;
  return bindingOf(limits, bindingOf({ maxTokens, maxCostMicros }, host.identity.binding));
}

/** If the adapter throws, the higher rate is reserved, so that its error does not fail the turn. */
function mayWriteLong(model: LanguageModel, request: ModelRequest): boolean {
  try {
    return model.writesLongCache?.(lent(request)) === true;
  } catch {
    return true;
  }
}

/**
 * The definition's price, or the runtime's; `null` if unknown. If a limit on cost applies, an unknown price is refused, also that
 * of a model that may be called instead: otherwise the turn would fail when that model is needed.
 */
async function priceFor(host: Host, called: LanguageModel, calling: PricedCall): Promise<Price | null> {
  const price = await priceOfModel(host, called, calling);
  if (!calling.binds) return price;
  for (const other of calledModels(host.definition.model))
    if (other !== called) await priceOfModel(host, other, calling);
  return price;
}

interface PricedCall {
  readonly request: ModelRequest;
  /** Whether a limit on cost applies. */
  readonly binds: boolean;
}

async function priceOfModel(
  { definition, prices, clock }: Host,
  model: LanguageModel,
  { request, binds }: PricedCall,
): Promise<Price | null> {
  // The definition's price is that of its own model, not of another one that a guard calls.
  const own = model === definition.model ? definition.price : null;
  const price = own ?? (await workingOn(clock, () => prices.priceOf(model, binds, clock.now())));
  if (!price) {
    if (binds) throw unpriced(definition, model);
    return null;
  }
  if (binds) assertToolsPriced(model, price);
  const hasRate = price.cacheWritePerMillion === undefined || hasLongWriteRate(price);
  if (hasRate || !mayWriteLong(model, request)) return price;
  if (!binds) return null;
  throw new InvalidInputError(
    `the price of cache entries of the longer lifetime of model "${model.name}" is not known (provider "${model.provider}"), but maxCost needs it: ` +
      `set longCacheWritePerMillion in its price (createRuntime({ prices }) or defineAgent({ price })), or leave cacheTtl out`,
  );
}

function unpriced(definition: Host["definition"], model: LanguageModel): InvalidInputError {
  const own = compositionOf(definition.model)
    ? ""
    : `, or for agent "${definition.name}" alone with defineAgent({ price: ${examplePrice} })`;
  return new InvalidInputError(
    `the price of model "${model.name}" is not known (provider "${model.provider}"), but maxCost needs it: set a price with ` +
      `createRuntime({ prices: { "${model.name}": ${examplePrice} } })${own}, in dollars per million tokens`,
  );
}

/** The provider bills each use of its tools, beside the tokens. */
function assertToolsPriced({ name, hostedTools = [] }: LanguageModel, { perCall = 0 }: Price): void {
  if (hostedTools.length === 0 || perCall > 0) return;
  throw new InvalidInputError(
    `the price of model "${name}" has no perCall, but maxCost needs it: the provider bills the use of ${hostedTools.join(", ")} beside the ` +
      `tokens. Set perCall to the most that one call may use of them, in dollars, for instance createRuntime({ prices: { "${name}": ` +
      `{ inputPerMillion: 0.25, outputPerMillion: 2, perCall: 0.03 } } }), and limit the uses, for OpenAI with max_tool_calls`,
  );
}

/** The suffix that a provider appends to a model's name: the date or number of a version. */
const versionEnd = /^[-@:]?\d/;

/** The model and price by which an answer is billed. */
export interface Billing {
  readonly price: Price | null;
  /** The billed model, if it differs from the agent's model. */
  readonly model?: string;
}

interface Paying {
  /** The price of the called model. */
  readonly asked: Price | null;
  readonly turn: TurnState | undefined;
  readonly called: Pick<LanguageModel, "name" | "provider">;
}

/**
 * The model that is billed for an answer, and its price: a model that passes calls on reports which one answered. The price of
 * the called model is used for its other versions, and if no other price is known.
 */
export async function billingOfAnswer(
  host: Host,
  { model, adapter }: ModelResponse,
  { asked, turn, called }: Paying,
): Promise<Billing> {
  const { definition, prices, clock } = host;
  const { name, provider } = called;
  const isOwn = adapter === undefined || (adapter.model === name && adapter.provider === provider);
  const isVersion = model === name || (model.startsWith(name) && versionEnd.test(model.slice(name.length)));
  if (definition.price || (isOwn && isVersion)) return { price: asked };
  const binds = turn !== undefined && wholeBinding(host, turn).maxCostMicros !== undefined;
  const answered = [{ name: model, provider: adapter?.provider ?? provider }];
  if (!isOwn) answered.push({ name: adapter.model, provider: adapter.provider });
  for (const one of answered) {
    const price = await workingOn(clock, () => prices.priceOf(one, binds, clock.now()));
    if (price) return one.name === name ? { price } : { price, model: one.name };
  }
  return { price: asked };
}

/** Tokenizers differ: a prompt is assumed to be longer than counted by this factor. */
const COUNTING_MARGIN = 1 / 20;

/** Tokens left for an answer in the window after the prompt; at least the minimum for which a call is made. */
function roomIn(window: number, promptTokens: number): number {
  return Math.max(MINIMUM_OUTPUT_TOKENS, window - Math.ceil(promptTokens * (1 + COUNTING_MARGIN)));
}

/** Whether the prompt's tokens are known more precisely than from its bytes. */
function isCounted({ promptTokens, promptBound }: Pick<ReservationAsk, "promptTokens" | "promptBound">): boolean {
  return promptTokens < promptBound;
}

/**
 * The request with the output bound of its reservation, if one was requested or a limit determined the reservation.
 * Throws `ModelError` of kind `context_length` if the model's window has no room for an answer: the call is not sent.
 */
export function boundedRequest(
  model: LanguageModel,
  request: ModelRequest,
  {
    asked,
    ask,
    granted,
  }: { readonly asked: number | undefined; readonly ask: ReservationAsk; readonly granted: Reservation },
): ModelRequest {
  if (asked === undefined && granted.isBound !== true) return request;
  const { contextWindow: window } = model;
  const least = Math.min(MINIMUM_OUTPUT_TOKENS, granted.outputTokens);
  if (window !== undefined && isCounted(ask) && window - ask.promptTokens < least) {
    const words = `The prompt has about ${ask.promptTokens} tokens, too many for the window of ${window} that "${model.name}" has; the call was not sent.`;
    throw new ModelError(words, { retryable: false, mayHaveBeenSent: false, details: { kind: "context_length" } });
  }
  return { ...request, maxOutputTokens: granted.outputTokens };
}

/** The settlement by the provider's usage report, or by our own count. */
export function settlementOf(reservation: Reservation, usage: Usage, { price, model }: Billing): Settlement {
  return {
    reservation,
    tokens: usage.inputTokens + usage.outputTokens,
    // An unknown price counts as 0: `priceFor` refuses it if a limit on cost applies.
    costMicros: costIfKnown(usage, price) ?? 0,
    usage,
    unconfirmed: false,
    ...(model === undefined ? {} : { model }),
  };
}

/** The settlement of a call with an unknown outcome: all of the reservation counts as used. */
export function unconfirmedSettlement(reservation: Reservation): Settlement {
  const { tokens, costMicros } = reservation;
  return { reservation, tokens, costMicros, usage: null, unconfirmed: true };
}

/**
 * The cost of a failed call: none if the provider refused or never received it; the prompt and the output so far if a stream was
 * interrupted; the whole reservation if unknown.
 */
export function billOf(
  error: unknown,
  { promptTokens, price }: ReservationAsk,
  reservation: Reservation,
): { usage: Usage | null; settlement: Settlement } {
  const known = error instanceof ModelError ? error : undefined;
  // Output before a server error within a stream is billed.
  const isRefused = known?.status !== undefined && known.partialOutputTokens === undefined;
  if (known && (!known.mayHaveBeenSent || isRefused)) {
    return { usage: null, settlement: emptySettlement(reservation) };
  }
  if (known?.partialOutputTokens === undefined) return { usage: null, settlement: unconfirmedSettlement(reservation) };
  const inputTokens = known.partialInputTokens ?? promptTokens;
  const usage: Usage = { inputTokens, outputTokens: known.partialOutputTokens, estimated: true };
  return { usage, settlement: settlementOf(reservation, usage, { price }) };
}

/** The settlement of a call that the provider refused or never received. */
export function emptySettlement(reservation: Reservation): Settlement {
  return { reservation, tokens: 0, costMicros: 0, usage: null, unconfirmed: false };
}

/** Micro-dollars; `null` if the price is unknown. */
export function costIfKnown(usage: Usage, price: Price | null): number | null {
  return price ? costOf(usage, price) : null;
}

/** Time limit for counting a prompt. */
const COUNT_TIMEOUT_MS = 5_000;

interface Measuring {
  readonly turnId: string;
  readonly model: LanguageModel;
  /** Identifies the call. */
  readonly key: string;
  /** The limits that apply to its accounts. */
  readonly binding: Binding;
  /** Reserved together with it. */
  readonly outputTokens: number;
  /** The model's window, if the output has to fit into it. */
  readonly window: number | undefined;
  readonly signal: AbortSignal;
}

/**
 * The prompt's tokens, and an upper bound of them. The model's adapter counts them if something depends on the count: a limit on
 * tokens or cost that is not `strict`, or the model's window, if the output might not fit after that many bytes. Otherwise the
 * number of bytes is used; it is also used, with a warning, if counting fails, returns an invalid number or takes too long.
 */
async function measurePrompt(
  host: Host,
  request: ModelRequest,
  { turnId, model, key, binding, outputTokens, window, signal }: Measuring,
): Promise<{ readonly promptTokens: number; readonly promptBound: number }> {
  const prompts = host.notes.promptsOf(model);
  const bound = boundOf(model, request);
  const before = prompts.startOf(request);
  const unknown = Math.max(0, bound - (before?.bound ?? 0));
  let prompt: MeasuredPrompt = { request, bound };
  const isLimited = bindsAmounts(binding) && !binding.strict;
  const isTight = window !== undefined && roomIn(window, (before?.reported ?? 0) + unknown) < outputTokens;
  if (isLimited || isTight) {
    try {
      prompt = { ...prompt, counted: await countOf(host, { model, request, signal }) };
    } catch (error) {
      signal.throwIfAborted();
      const why = storedErrorOf(error).message;
      const message = `the prompt's tokens could not be counted (${why}); its bytes are reserved instead: ${bound}`;
      appendWarnings(host, turnId, [{ code: "prompt_not_counted", message }]);
    }
  }
  const promptTokens = prompts.tokensOf(prompt, before);
  prompts.noteAsked(key, prompt);
  return { promptTokens, promptBound: Math.max(bound, promptTokens) };
}

/** If the adapter returns no bound, the bytes are the bound: a turn does not depend on the adapter. */
function boundOf(model: LanguageModel, request: ModelRequest): number {
  try {
    const bound = model.boundPromptTokens?.(lent(request));
    if (bound !== undefined && isCount(bound)) return Math.ceil(bound);
  } catch {
    // The number of bytes is an upper bound too.
  }
  return promptByteBound(request);
}

async function countOf(
  host: Host,
  { model, request, signal }: Pick<Measuring, "model" | "signal"> & { readonly request: ModelRequest },
): Promise<number> {
  const counting = workingOn(host.clock, () => model.countPromptTokens(lent(request)));
  const late = (): never => {
    throw failure(`it took more than ${COUNT_TIMEOUT_MS} ms`);
  };
  const limit = { ms: COUNT_TIMEOUT_MS, signal, late };
  const counted = typeof counting === "number" ? counting : await inTime(host, counting, limit);
  if (isCount(counted)) return Math.ceil(counted);
  throw failure(`the model's adapter counted ${describeValue(counted)}`);
}

function isCount(value: unknown): value is number {
  return typeof value === "number" && value >= 0 && value <= MOST_TOKENS;
}

function failure(message: string): ModelError {
  return new ModelError(message, { retryable: false, mayHaveBeenSent: false });
}

/**
 * The request for a model adapter, with its own copy of the list, because user code may append to the list. The messages are
 * frozen.
 */
export function lent(request: ModelRequest): ModelRequest {
  return { ...request, messages: [...request.messages] };
}
