import { InvalidInputError } from "../errors/index.ts";
import { type LanguageModel, offlineModel, openaiModel } from "../model/index.ts";

/**
 * The model that a definition names: `offline` is the model of this package, any other name one of the OpenAI-compatible
 * server of the environment (row H7).
 */
export function modelOf(agent: string, model: LanguageModel | string): LanguageModel {
  if (typeof model === "string" && model !== "") return model === "offline" ? offlineModel() : openaiModel(model);
  if (typeof model === "object" && typeof model?.generate === "function") return model;
  throw new InvalidInputError(
    `agent "${agent}": model must be a LanguageModel or the name of one, for instance openaiModel("gpt-5-mini"), "gpt-5-mini" or offlineModel()`,
  );
}
