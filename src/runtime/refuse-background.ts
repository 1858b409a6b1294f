import { type AgentDefinition, collectDefinitions, isBackground } from "../agents/index.ts";
import { UnsupportedError } from "../errors/index.ts";

/**
 * Children in the background outlast their turn, and their ends must not be lost: they need a tree that is saved with each
 * commit. So do queued tools: whoever runs one finds the call in the store. Throws `UnsupportedError` naming the subagent or
 * the tool and what would be right.
 */
export function refuseBackground(definition: AgentDefinition, where: string): void {
  for (const { name, tools } of collectDefinitions([definition]).values()) {
    const queued = tools.tools.find((tool) => tool.kind === "function" && tool.queue !== undefined);
    if (queued) {
      throw new UnsupportedError(
        `agent "${name}" has the tool "${queued.name}" with a queue, whose workers read the call from the store; ${where} keeps nothing there. Leave its queue out, or take an agent that is saved with each commit (autoSave: true)`,
        { details: { agent: name, tool: queued.name } },
      );
    }
    const tool = tools.tools.find(isBackground);
    if (!tool) continue;
    throw new UnsupportedError(
      `agent "${name}" has the subagent "${tool.name}" with mode "background", which goes on after the turn; ${where} keeps nothing that it could go on in. Use mode "await", or an agent that is saved with each commit (autoSave: true)`,
      { details: { agent: name, subagent: tool.name } },
    );
  }
}
