import { hasMethods, portNameRule, ruleOf } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { type LanguageModel, offlineModel, openaiModel } from "../model/index.ts";

/**
 * The model that a definition names: `offline` is the model of this package, any other name one of the OpenAI-compatible
 * server of the environment (row H7).
 */
export function modelOf(agent: string, model: LanguageModel | string): LanguageModel {
  if (typeof model === "string" && model !== "") return model === "offline" ? offlineModel() : openaiModel(model);
  if (hasMethods(model, ["generate", "countPromptTokens"])) return checkedModel(agent, model);
  if (hasMethods(model, ["generate"])) {
    throw new InvalidInputError(`agent "${agent}": model lacks countPromptTokens(request), by which budgets are kept`);
  }
  throw new InvalidInputError(
    `agent "${agent}": model must be a LanguageModel or the name of one, for instance openaiModel("gpt-5-mini"), "gpt-5-mini" or offlineModel()`,
  );
}

/** What is journalled of a model, and reckoned with. */
function checkedModel(agent: string, model: LanguageModel): LanguageModel {
  const { name, provider, contextWindow } = model;
  portNameRule(name, `agent "${agent}": model.name`);
  portNameRule(provider, `agent "${agent}": model.provider`);
  if (contextWindow !== undefined) windowRule(contextWindow, `agent "${agent}": model.contextWindow`);
  return model;
}

const windowRule = ruleOf(
  "a number of tokens above 0, or nothing",
  (value) => typeof value === "number" && Number.isFinite(value) && value > 0,
);
