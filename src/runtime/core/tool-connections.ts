import type { AgentDefinition } from "../../agents/index.ts";

/**
 * Holds the connections that the tools of these definitions share, each once. Returns the function that releases all of them; a
 * connection whose release fails does not prevent the others.
 */
export function holdToolConnections(definitions: ReadonlyMap<string, AgentDefinition>): () => Promise<void> {
  const tools = [...definitions.values()].flatMap((definition) => definition.tools.tools);
  const holds = new Set(tools.flatMap((tool) => (tool.kind === "function" && tool.holdConnections) || []));
  const releases = [...holds].map((hold) => hold());
  return async () => {
    await Promise.allSettled(releases.map((release) => release()));
  };
}
