import { describeValue, nameRule, optionsOf, type OptionsSchema, recordRule } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { takeObject } from "../state/index.ts";
import { type AiSdkModelOptions, providerModel } from "./ai-sdk/ai-sdk-model.ts";
import type { AiSdkLanguageModel } from "./ai-sdk/provider-model.ts";
import type { LanguageModel } from "./language-model.ts";
import { adapterOptionRules, adapterOptionsInstead } from "./model-option-rules.ts";

export type { AiSdkModelOptions } from "./ai-sdk/ai-sdk-model.ts";
export type { AiSdkLanguageModel } from "./ai-sdk/provider-model.ts";
export type { ProviderOptions } from "../state/index.ts";

const optionsSchema: OptionsSchema<AiSdkModelOptions> = {
  rules: {
    ...adapterOptionRules,
    name: nameRule,
    provider: nameRule,
    providerOptions: recordRule("an object of options by the names of providers", (value, where) =>
      takeObject(value, where),
    ),
  },
  instead: adapterOptionsInstead,
};

/**
 * A model of the AI SDK as a model of troupe: `aiSdkModel(anthropic("claude-sonnet-4-5"))`. Any package that provides a
 * `LanguageModelV3` or `LanguageModelV4` works: Anthropic, Google, Bedrock, Mistral, xAI, Groq, OpenRouter, Ollama and others. Answers
 * are streamed. The runtime repeats failed calls, reserves tokens and cost before each call, and aborts calls.
 *
 * - Reasoning, signatures and ids go back to the model that wrote them, in their order.
 * - The thinking budget of Anthropic and Bedrock (`thinking.budgetTokens`, `reasoningConfig.budgetTokens`) counts as output: answer and
 *   thinking together never exceed `maxOutputTokens`.
 * - Models of OpenAI's Responses API get `store: false`, since the journal has the history.
 * - A tool that the provider executes itself ends the call with a `ModelError`: it is not known before the call, so neither its cost nor
 *   its effects can be controlled.
 *
 * Throws `InvalidInputError` for a wrong option, and for a value that is no such model.
 */
export function aiSdkModel(model: AiSdkLanguageModel, options?: AiSdkModelOptions): LanguageModel {
  assertProviderModel(model);
  return providerModel(model, optionsOf<AiSdkModelOptions>(options, "aiSdkModel()", optionsSchema));
}

function assertProviderModel(given: unknown): asserts given is AiSdkLanguageModel {
  const expected = 'a language model of the AI SDK, for instance anthropic("claude-sonnet-4-5")';
  if (typeof given !== "object" || given === null || !("doStream" in given) || typeof given.doStream !== "function") {
    throw new InvalidInputError(`aiSdkModel() got ${describeValue(given)} as its model; expected ${expected}.`);
  }
  const { specificationVersion, provider, modelId } = given as Partial<Record<keyof AiSdkLanguageModel, unknown>>;
  if (specificationVersion !== "v3" && specificationVersion !== "v4") {
    throw new InvalidInputError(
      `aiSdkModel() got a model of the specification ${describeValue(specificationVersion)}; expected "v3" and "v4". Install a version of the provider's package for AI SDK 6 or 7.`,
    );
  }
  if (typeof provider !== "string" || provider === "" || typeof modelId !== "string" || modelId === "") {
    throw new InvalidInputError(`aiSdkModel() got a model without a provider or modelId; expected ${expected}.`);
  }
}
