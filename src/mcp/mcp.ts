import { InvalidInputError } from "../errors/index.ts";
import type { JsonObject } from "../state/index.ts";
import type { Tool } from "../tools/index.ts";
import { type ListedTool, McpConnection } from "./mcp-connection.ts";
import { wordsOf } from "./mcp-errors.ts";
import { McpServerError } from "./mcp-server-error.ts";
import { type McpOptions, mcpOptionsOf } from "./mcp-options.ts";
import { loadSdk } from "./mcp-sdk.ts";
import { McpSecrets } from "./mcp-secrets.ts";
import { namesOf, toolOf } from "./mcp-tool.ts";

/** The tools of an MCP server. */
export interface McpTools {
  /** For `tools` of agents, in the server's order. They do not change while the process runs. */
  readonly tools: readonly Tool<JsonObject>[];
  /** Tools of the server that are not among `tools`, each with the reason, and parts of schemas that are not checked. */
  readonly warnings: readonly string[];
  /**
   * Ends the connection, and the server's process. Later calls fail without being sent. Call it after `runtime.shutdown()`. Until then
   * the server's process keeps this one running.
   */
  close(): Promise<void>;
}

/**
 * Connects to an MCP server and returns its tools. All agents share the connection; if it is lost, the next call opens another. Needs
 * the package `@modelcontextprotocol/client`. Rejects with `InvalidInputError` for invalid options and for settings of tools that the
 * server does not have, with `UnsupportedError` if the package is not installed, and with `McpServerError` if the server cannot be
 * reached within `connectTimeoutMs`.
 */
export async function mcp(options: McpOptions): Promise<McpTools> {
  const given = mcpOptionsOf(options);
  const secrets = new McpSecrets(given);
  const connection = new McpConnection(await loadSdk(), given, secrets);
  try {
    const listed = await connection.listTools(AbortSignal.timeout(given.connectTimeoutMs ?? 30_000));
    const { tools, warnings } = toolsOf({ options: given, connection, secrets }, listed);
    return Object.freeze({
      tools: Object.freeze(tools),
      warnings: Object.freeze(warnings.map(secrets.redact)),
      close: async () => await connection.close(),
    });
  } catch (error) {
    await connection.close();
    if (error instanceof InvalidInputError) throw error;
    const message = `mcp("${given.name}"): the server's tools cannot be listed: ${wordsOf(error)}`;
    throw secrets.redacted(new McpServerError(message));
  }
}

function toolsOf(
  source: { readonly options: McpOptions; readonly connection: McpConnection; readonly secrets: McpSecrets },
  all: readonly ListedTool[],
): { tools: Tool<JsonObject>[]; warnings: string[] } {
  const { name: server, tools: settings = {} } = source.options;
  const unknown = Object.keys(settings).find((name) => all.every((tool) => tool.name !== name));
  if (unknown !== undefined) {
    const known = all.slice(0, 50).map(({ name }) => name);
    const right = known.length === 0 ? "it has none" : `it has ${known.join(", ")}`;
    throw new InvalidInputError(`mcp("${server}"): the server has no tool "${unknown}"; ${right}`);
  }
  const listed = all.filter(({ name }) => !Object.hasOwn(settings, name) || settings[name] !== false);
  const tools: Tool<JsonObject>[] = [];
  const warnings: string[] = [];
  for (const [index, name] of namesOf(source.options, listed).entries()) {
    const one = listed[index] as ListedTool;
    if (name === undefined) warnings.push(`The tool "${one.name}" is listed twice; the first is used.`);
    else if (isTaskOnly(one))
      warnings.push(`The tool "${one.name}" is left out: it runs only as a task, which is not supported.`);
    else {
      const tool = toolOf(source, one, name);
      tools.push(tool);
      for (const fragment of tool.unchecked ?? [])
        warnings.push(`The tool "${one.name}" is not fully checked: ${fragment}`);
    }
  }
  return { tools, warnings };
}

function isTaskOnly({ execution }: ListedTool): boolean {
  return typeof execution === "object" && execution !== null && Reflect.get(execution, "taskSupport") === "required";
}
