import { hasMethods, isPortName } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { type LanguageModel, offlineModel, openaiModel } from "../model/index.ts";

/**
 * The model that a definition names: `offline` is the model of this package, any other name one of the OpenAI-compatible
 * server of the environment (row H7).
 */
export function modelOf(agent: string, model: LanguageModel | string): LanguageModel {
  if (typeof model === "string" && model !== "") return model === "offline" ? offlineModel() : openaiModel(model);
  if (isModel(model)) return model;
  throw new InvalidInputError(
    `agent "${agent}": model must be a LanguageModel or the name of one, for instance openaiModel("gpt-5-mini"), "gpt-5-mini" or offlineModel()`,
  );
}

function isModel(model: unknown): model is LanguageModel {
  if (!hasMethods(model, ["generate", "countPromptTokens"])) return false;
  const { name, provider, contextWindow = 1 } = model as Partial<Record<keyof LanguageModel, unknown>>;
  const isWindow = typeof contextWindow === "number" && Number.isFinite(contextWindow) && contextWindow > 0;
  return isWindow && [name, provider].every(isPortName);
}
