import { type AgentDefinition, collectDefinitions } from "../agents/index.ts";
import { evalVariables } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { calledModels, callsServer } from "../model/index.ts";
import { isCi } from "./recorded-model.ts";

/**
 * Refuses agents whose model calls a server while the environment variable `CI` is set, unless `troupe eval --live` allows it. `where` is the
 * function that would run them. Throws `InvalidInputError`.
 */
export function assertMayCall(where: string, definitions: readonly AgentDefinition[]): void {
  if (!isCi() || process.env[evalVariables.live] === "1") return;
  for (const { name, model } of collectDefinitions(definitions).values()) {
    const live = calledModels(model).find(callsServer);
    if (!live) continue;
    throw new InvalidInputError(
      `${where}: the agent "${name}" would call the model "${live.name}", and no model is called while the environment variable CI is set; ` +
        "use recordedModel() or scriptedModel(), or run `troupe eval --live`",
    );
  }
}
