import { anyRule, optionsOf, recordRule } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { type LanguageModel, modelOf } from "../model/index.ts";
import { createToolRegistry } from "../tools/index.ts";
import { assertPriceFits, collectDefinitions, modelSummary, storedFrom } from "./define-agent.ts";
import { type AgentDefinition, type AgentTool, definitionRule } from "./definition.ts";

/** Options of `withModel()` besides the definition and its model. */
export interface WithModelOptions {
  /**
   * Models for subagents at any depth, by the name of their definition. Default: each subagent keeps its own model.
   */
  readonly subagents?: Readonly<Record<string, LanguageModel | string>> | undefined;
}

/**
 * Copies a definition with another model; instructions, tools, hooks and limits stay the same. For testing an agent without its
 * real model. Code that spawns a subagent must use the subagent's copy.
 *
 * Throws `InvalidInputError` for a value that is not a definition or a model, and for subagents that the definition does not
 * have.
 */
export function withModel<Definition extends AgentDefinition>(
  definition: Definition,
  model: LanguageModel | string,
  given?: WithModelOptions,
): Definition {
  definitionRule(definition, "withModel(): its definition");
  const { subagents = {} } = optionsOf<WithModelOptions>(given, "withModel()", {
    rules: { subagents: recordRule("an object that maps names of subagents to models", anyRule) },
    instead: { agents: "subagents", models: "subagents" },
  });
  const names = [...collectDefinitions([definition]).keys()].filter((name) => name !== definition.name);
  const unknown = Object.keys(subagents).find((name) => !names.includes(name));
  if (unknown !== undefined) {
    const known = names.length === 0 ? "it has no subagents" : `its subagents are ${names.join(", ")}`;
    throw new InvalidInputError(`withModel(): agent "${definition.name}" has no subagent "${unknown}"; ${known}`);
  }
  const models = new Map([...Object.entries(subagents), [definition.name, model] as const]);
  // One copy per definition, so that a subagent shared by two others stays shared.
  const copies = new Map<AgentDefinition, AgentDefinition>();
  const copyOf = <Any extends AgentDefinition>(original: Any): Any => {
    const copy = copies.get(original) ?? copied(original, models.get(original.name), copyOf);
    copies.set(original, copy);
    return copy as Any;
  };
  return copyOf(definition);
}

function copied(
  original: AgentDefinition,
  given: LanguageModel | string | undefined,
  copyOf: (child: AgentDefinition) => AgentDefinition,
): AgentDefinition {
  const { name, tools, stored } = original;
  const members = tools.tools.map((tool): AgentTool => {
    if (tool.kind !== "subagent") return tool;
    const child = copyOf(tool.definition);
    return child === tool.definition ? tool : Object.freeze({ ...tool, definition: child });
  });
  const hasOtherTools = members.some((tool, index) => tool !== tools.tools[index]);
  if (given === undefined && !hasOtherTools) return original;
  const model = given === undefined ? original.model : modelOf(`agent "${name}": model`, given);
  assertPriceFits(`agent "${name}"`, model, original.price);
  const { hash: _hash, ...content } = stored;
  const changed = storedFrom({ ...content, model: modelSummary(model) });
  return Object.freeze({
    ...original,
    model,
    tools: hasOtherTools ? createToolRegistry<AgentTool>(members, tools.onDemand) : tools,
    ref: Object.freeze({ name, hash: changed.hash }),
    stored: changed,
  });
}
