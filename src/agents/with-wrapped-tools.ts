import { createToolRegistry, type Tool } from "../tools/index.ts";
import type { AgentDefinition, AgentTool } from "./definition.ts";

/** Copies a definition and its subagents with other code in their function tools. Names, schemas and hashes stay the same. */
export function withWrappedTools(
  definition: AgentDefinition,
  wrap: (tool: Tool<never>, agent: AgentDefinition) => Tool<never>,
): AgentDefinition {
  // One copy per definition, so that a subagent shared by two others stays shared.
  const copies = new Map<AgentDefinition, AgentDefinition>();
  const copyOf = (original: AgentDefinition): AgentDefinition => {
    const known = copies.get(original);
    if (known) return known;
    const members = original.tools.tools.map((tool): AgentTool => {
      if (tool.kind === "function") return wrap(tool, original);
      return tool.kind === "subagent" ? Object.freeze({ ...tool, definition: copyOf(tool.definition) }) : tool;
    });
    const tools = createToolRegistry<AgentTool>(members, original.tools.onDemand);
    const copy = Object.freeze({ ...original, tools });
    copies.set(original, copy);
    return copy;
  };
  return copyOf(definition);
}
