import { describeValue, functionRule, listRule, anyRule, optionsOf, portNameRule } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { composedModel, type ModelChoice } from "./composition.ts";
import type { LanguageModel } from "./language-model.ts";
import { modelsOf, windowRule } from "./model-of.ts";

/** Options of `routedModel()`. */
export interface RoutedModelOptions {
  /** All models that `pick` may return. They are part of the definition, and the journal refers to them. */
  readonly models: readonly LanguageModel[];
  /** Name in the definition and in traces of turns. Default: the names of the models. */
  readonly name?: string | undefined;
  /** Tokens by which `autoCompact` and `contextPercent` go. Default: the smallest window among the models. */
  readonly contextWindow?: number | undefined;
}

/**
 * A model that chooses one of others for each step, and for each call of `run.generate()`. The choice is journalled with the call
 * and holds for all attempts of the step, also after a restart. An error of `pick` fails the turn.
 * @param pick Returns one of `models`.
 * @throws InvalidInputError if `pick` is not a function, and for an invalid option or an empty list of models.
 */
export function routedModel(
  pick: (choice: ModelChoice) => LanguageModel | Promise<LanguageModel>,
  given: RoutedModelOptions,
): LanguageModel {
  functionRule(pick, "routedModel(): pick");
  const { models, name, contextWindow } = optionsOf<RoutedModelOptions>(given, "routedModel()", routedOptions);
  const members = modelsOf("routedModel(): models", models);
  return composedModel({ kind: "routed", models: members, pick }, { name, contextWindow });
}

const routedOptions = {
  rules: {
    models: listRule("a list of the models that pick may return", anyRule),
    name: portNameRule,
    contextWindow: windowRule,
  },
  needed: ["models" as const],
};

/** The index of the picked model. Throws `InvalidInputError` for any other value. */
export function pickedIndex(models: readonly LanguageModel[], picked: unknown): number {
  const index = (models as readonly unknown[]).indexOf(picked);
  if (index >= 0) return index;
  const names = models.map(({ name }) => name).join(", ");
  throw new InvalidInputError(
    `pick() of routedModel returned ${describeModel(picked)}; it must return one of its models: ${names}`,
  );
}

function describeModel(value: unknown): string {
  try {
    const { name } = value as { readonly name?: unknown };
    if (typeof name === "string") return `a model named "${name.slice(0, 80)}" that is not in models`;
  } catch {
    // Not an object, or one that cannot be read.
  }
  return describeValue(value);
}
