import { functionRule, optionsOf, optionsRule, type OptionRule, portNameRule, wholeNumberRule } from "../base/index.ts";
import type { ModelError } from "../errors/index.ts";
import { type BreakerLimits, type CircuitBreakerOptions, defaultBreaker, isProviderError } from "./circuit-breaker.ts";
import { composedModel } from "./composition.ts";
import type { LanguageModel } from "./language-model.ts";
import { delayRule } from "./model-option-rules.ts";
import { modelsOf, windowRule } from "./model-of.ts";

/** Options of `fallbackModel()`. */
export interface FallbackModelOptions {
  /**
   * Whether the next model is called after this error of one; `byDefault` is what it replaces. Called once for each failed attempt:
   * the decision is journalled. Default: after errors that another model or provider may not have.
   */
  readonly when?: ((error: ModelError, byDefault: boolean) => boolean) | undefined;
  /** When models of a failing provider are skipped; `false`: never. Default: after 5 failures in a minute, for 30 seconds. */
  readonly breaker?: CircuitBreakerOptions | false | undefined;
  /** Name in the definition and in traces of turns. Default: the names of the models. */
  readonly name?: string | undefined;
  /** Tokens by which `autoCompact` and `contextPercent` go. Default: the smallest window among the models. */
  readonly contextWindow?: number | undefined;
}

/**
 * A model that tries the given ones in their order: when an attempt fails and `when` permits it, the runtime calls the next model
 * without a wait. Each attempt is reserved, priced and journalled under the model that is called. When the last model has failed,
 * the first one is called again after the usual wait; `maxModelAttempts` counts these rounds.
 * @throws InvalidInputError for an empty list, an invalid model and an invalid option.
 */
export function fallbackModel(
  models: readonly (LanguageModel | string)[],
  given?: FallbackModelOptions,
): LanguageModel {
  const members = modelsOf("fallbackModel(): models", models);
  const options = optionsOf<FallbackModelOptions>(given, "fallbackModel()", fallbackOptions);
  const { when = (_error, byDefault) => byDefault, breaker, name, contextWindow } = options;
  const limits: BreakerLimits | null = breaker === false ? null : { ...defaultBreaker, ...definedIn(breaker) };
  return composedModel({ kind: "fallback", models: members, when, breaker: limits }, { name, contextWindow });
}

const breakerOptions = optionsRule<CircuitBreakerOptions>({
  rules: { failures: wholeNumberRule(1, 1_000), windowMs: delayRule, openMs: delayRule },
  instead: { threshold: "failures", maxFailures: "failures", resetTimeoutMs: "openMs", halfOpenAfterMs: "openMs" },
});

const breakerRule: OptionRule = (value, where) => (value === false ? false : breakerOptions(value, where));

const fallbackOptions = {
  rules: { when: functionRule, breaker: breakerRule, name: portNameRule, contextWindow: windowRule },
  instead: { shouldFallback: "when", circuitBreaker: "breaker" },
};

function definedIn(options: CircuitBreakerOptions = {}): Partial<BreakerLimits> {
  const given = Object.entries(options).filter(([, value]) => value !== undefined);
  return Object.fromEntries(given) as Partial<BreakerLimits>;
}

/**
 * Whether, unless `when` decides otherwise, another model may succeed where this one failed. True for errors that may be
 * repeated (status 408, 409, 429 and 5xx, limits of time, broken answers), for keys, quotas, configurations and connections that
 * fail for good, for a model that the provider does not have (404), and for a prompt that is too long, which is only sent on to a
 * model with a larger window. False for other refusals, among them those of a content filter, and for tool calls that the server
 * could not parse, which the model itself corrects.
 */
export function isFallbackError(error: ModelError): boolean {
  return isProviderError(error) || error.status === 404 || error.details["kind"] === "context_length";
}
