import { anyRule, hasMethods, listRule, portNameRule, reading, ruleOf } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { LanguageModel } from "./language-model.ts";
import { offlineModel } from "./offline-model.ts";
import { openaiModel } from "./openai-model.ts";

/**
 * A model that a caller gave, checked. A name is resolved: `offline` is this package's own model; any other name is a model of
 * the OpenAI-compatible server that the environment configures.
 * @param where The field, for the message: `agent "clerk": model`.
 */
export function modelOf(where: string, model: LanguageModel | string): LanguageModel {
  if (typeof model === "string" && model !== "") return model === "offline" ? offlineModel() : openaiModel(model);
  if (hasMethods(model, ["generate", "countPromptTokens"])) return checkedModel(where, model);
  if (hasMethods(model, ["generate"])) {
    throw new InvalidInputError(`${where} lacks countPromptTokens(request), which budgets need`);
  }
  throw new InvalidInputError(
    `${where} must be a LanguageModel or the name of one, for instance openaiModel("gpt-5-mini"), "gpt-5-mini" or offlineModel()`,
  );
}

/** Checks the fields of a model that are journalled and used in calculations. */
function checkedModel(where: string, model: LanguageModel): LanguageModel {
  const { name, provider, contextWindow, server } = model;
  portNameRule(name, `${where}.name`);
  portNameRule(provider, `${where}.provider`);
  if (contextWindow !== undefined) windowRule(contextWindow, `${where}.contextWindow`);
  if (server !== undefined) portNameRule(server, `${where}.server`);
  return model;
}

export const windowRule = ruleOf(
  "a number of tokens above 0, or undefined",
  (value) => typeof value === "number" && Number.isFinite(value) && value > 0,
);

/** The models of a composition: a list of at least one, each checked. */
export function modelsOf(where: string, given: unknown): readonly LanguageModel[] {
  const models = reading(where, () => modelList(given, where)) as readonly LanguageModel[];
  if (models.length === 0) throw new InvalidInputError(`${where} is empty; expected at least one model`);
  const checked = models.map((model, index) =>
    reading(`${where}[${index}]`, () => modelOf(`${where}[${index}]`, model)),
  );
  return Object.freeze(checked);
}

const modelList = listRule("a list of models", anyRule);
