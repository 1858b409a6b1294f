import { describeValue } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { type LanguageModel, offlineModel, openaiModel } from "../model/index.ts";
import { checkName } from "./context-checks.ts";

/**
 * The model that a definition names: `offline` is the model of this package, any other name one of the OpenAI-compatible
 * server of the environment (row H7).
 */
export function modelOf(agent: string, model: LanguageModel | string): LanguageModel {
  if (typeof model === "string" && model !== "") return model === "offline" ? offlineModel() : openaiModel(model);
  if (typeof model === "object" && typeof model?.generate === "function") return checkedModel(agent, model);
  throw new InvalidInputError(
    `agent "${agent}": model must be a LanguageModel or the name of one, for instance openaiModel("gpt-5-mini"), "gpt-5-mini" or offlineModel()`,
  );
}

/** What is journalled of a model, and reckoned with. */
function checkedModel(agent: string, model: LanguageModel): LanguageModel {
  for (const field of ["name", "provider"] as const) checkName(`agent "${agent}": model.${field}`, model[field]);
  const { contextWindow } = model;
  if (contextWindow === undefined || (Number.isFinite(contextWindow) && contextWindow > 0)) return model;
  throw new InvalidInputError(
    `agent "${agent}": model.contextWindow is ${describeValue(contextWindow)}; leave it out, or give a number of tokens above 0`,
  );
}
