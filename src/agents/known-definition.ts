import { describeValue, hasMethods, type OptionRule, reading, ruleOf } from "../base/index.ts";
import { InvalidInputError, NotFoundError } from "../errors/index.ts";
import type { AgentDefinition } from "./definition.ts";

/** Whether `defineAgent` has made it, in this copy of the package or another one. */
export function isDefinition(value: unknown): value is AgentDefinition {
  if (typeof value !== "object" || value === null) return false;
  const { name, ref, tools, model } = value as Partial<Record<keyof AgentDefinition, unknown>>;
  if (typeof name !== "string" || typeof ref !== "object" || ref === null) return false;
  return hasMethods(tools, ["get", "definitions"]) && hasMethods(model, ["generate"]);
}

export const definitionRule: OptionRule = ruleOf("a definition, as defineAgent() makes it", isDefinition);

/**
 * A child runs only where its definition is known by name, after a restart too: one that the runtime was not given would never
 * begin. Throws `NotFoundError` for such a one, `InvalidInputError` for what is none, and for another one of a known name.
 * @param of Who was given it: `run.spawn()`.
 */
export function assertGiven(
  definitions: Pick<ReadonlyMap<string, AgentDefinition>, "get">,
  definition: unknown,
  of: string,
): asserts definition is AgentDefinition {
  if (!reading(of, () => isDefinition(definition))) {
    throw new InvalidInputError(
      `${of} takes a definition, as defineAgent() makes it, not ${describeValue(definition)}`,
    );
  }
  const { name } = definition as AgentDefinition;
  const known = definitions.get(name);
  if (known === definition) return;
  const details = { definition: name };
  if (known) {
    throw new InvalidInputError(
      `${of} was given another definition "${name}" than this runtime has; spawn the one that it was given, or give this one its own name`,
      { details },
    );
  }
  throw new NotFoundError(
    `${of}: the definition "${name}" was not given to this runtime; name it in { agents: [...] } of createRuntime(), createAgent() or createAgentLoop()`,
    { details },
  );
}
