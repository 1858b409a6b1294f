import { resolve } from "node:path";
import { type AgentDefinition, withAddedTools } from "../../agents/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import type { McpConfigTools } from "../../mcp/index.ts";
import type { CliContext } from "../cli-context.ts";
import type { AgentFile } from "../job/agent-file.ts";
import { closeAtEnd } from "../opened-servers.ts";
import { loginTokens } from "./login-tokens.ts";
import { oneLine } from "../view/terminal-text.ts";

type McpContext = Pick<CliContext, "directory" | "environment" | "note">;

/** The servers that a command has opened, by the path of their file: all agents of the command share them. */
const opened = new WeakMap<object, Map<string, Promise<McpConfigTools>>>();

/**
 * Adds the tools of the MCP servers in a file to the agents of an agent file that run without a name; subagents keep their own tools. The
 * servers, and those of a YAML file, are closed when the command ends. Throws `InvalidInputError` or `McpServerError` if a server cannot be used.
 * @param mcp Path of the file; `undefined` for none.
 */
export async function withMcpTools(
  context: McpContext,
  agentFile: AgentFile,
  mcp: string | undefined,
): Promise<AgentFile> {
  if (agentFile.teal !== undefined) closeAtEnd(context, agentFile.teal.close);
  if (mcp === undefined) return agentFile;
  const { tools } = await serversOf(context, mcp);
  const changed = new Map<AgentDefinition, AgentDefinition>(
    agentFile.roots.map((root) => [root, withAddedTools(root, tools)]),
  );
  const of = (definition: AgentDefinition): AgentDefinition => changed.get(definition) ?? definition;
  const { agents, roots, teal } = agentFile;
  return {
    ...agentFile,
    agents: [of(agents[0]), ...agents.slice(1).map(of)],
    roots: [of(roots[0]), ...roots.slice(1).map(of)],
    ...(teal === undefined ? {} : { teal: Object.freeze({ ...teal, definition: of(teal.definition) }) }),
  };
}

/** Throws `InvalidInputError` if the agent does not get the tools. */
export function assertGetsTools({ roots }: AgentFile, agent: AgentDefinition, mcp: string | undefined): void {
  if (mcp === undefined || roots.includes(agent)) return;
  const names = roots.map(({ name }) => `"${name}"`).join(", ");
  throw new InvalidInputError(`--mcp adds tools to ${names}, not to "${agent.name}", which is a subagent of others`);
}

/** The absolute path of the file. */
export function pathOf({ directory }: CliContext, mcp: string | undefined): string | undefined {
  return mcp === undefined ? undefined : resolve(directory, mcp);
}

/** The words of a command line that name the file. */
export function mcpWords(mcp: string | undefined): readonly string[] {
  return mcp === undefined ? [] : ["--mcp", mcp];
}

/** The tools of all servers in a file. Throws `InvalidInputError` or `McpServerError` if a server cannot be used. */
export async function toolsOfServers(context: McpContext, mcp: string): Promise<McpConfigTools["tools"]> {
  return (await serversOf(context, mcp)).tools;
}

async function serversOf(context: McpContext, mcp: string): Promise<McpConfigTools> {
  const known = opened.get(context) ?? new Map<string, Promise<McpConfigTools>>();
  opened.set(context, known);
  const path = resolve(context.directory, mcp);
  const servers = known.get(path) ?? openServers(context, mcp);
  known.set(path, servers);
  return await servers;
}

async function openServers(context: McpContext, mcp: string): Promise<McpConfigTools> {
  // Loaded only here: commands without MCP servers do not need it.
  const { mcpFromConfig } = await import("../../mcp/index.ts");
  const servers = await mcpFromConfig(mcp, {
    environment: context.environment,
    tokens: loginTokens(context),
  });
  closeAtEnd(context, servers.close);
  for (const warning of servers.warnings) context.note(`troupe: warning: ${oneLine(warning)}`);
  return servers;
}
