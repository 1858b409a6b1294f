import { artifactTool, createToolRegistry } from "../tools/index.ts";
import { describeTool, grantedToolOf, storedFrom } from "./define-agent.ts";
import type { AgentDefinition, AgentTool } from "./definition.ts";

/**
 * Copies a definition with further tools after its own. Throws `InvalidInputError` if a name is taken.
 */
export function withAddedTools(definition: AgentDefinition, added: readonly AgentTool[]): AgentDefinition {
  if (added.length === 0) return definition;
  const { name, tools, stored } = definition;
  const onDemand = tools.onDemand.length > 0 ? tools.onDemand : [artifactTool];
  const registry = createToolRegistry<AgentTool>([...tools.tools, ...added], onDemand);
  const { hash: _hash, ...content } = stored;
  const changed = storedFrom({
    ...content,
    tools: registry.tools.map(describeTool),
    onDemandTools: registry.onDemand.map(describeTool),
  });
  return Object.freeze({
    ...definition,
    tools: registry,
    grantedTools: Object.freeze(registry.tools.map((tool) => Object.freeze(grantedToolOf(tool)))),
    ref: Object.freeze({ name, hash: changed.hash }),
    stored: changed,
  });
}
