import { visible } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { JsonObject } from "../state/index.ts";
import type { SkillSource, Tool } from "../tools/index.ts";
import type { ListedTool } from "./listed-tool.ts";
import { ListWatch } from "./list-watch.ts";
import { McpAuthorization } from "./mcp-authorization.ts";
import { McpAuthorizationError } from "./mcp-authorization-error.ts";
import { wordsOf } from "./mcp-errors.ts";
import { forgetLoginsOf, loginsOf, type McpLogins, noLogins } from "./mcp-logins.ts";
import { McpServerError } from "./mcp-server-error.ts";
import { type McpOptions, mcpOptionsOf } from "./mcp-options.ts";
import { McpPins } from "./mcp-pins.ts";
import { NO_OWNER } from "./mcp-pool.ts";
import { loadSdk } from "./mcp-sdk.ts";
import { McpSecrets } from "./mcp-secrets.ts";
import { resourceTools } from "./mcp-resource-tools.ts";
import type { McpResources } from "./mcp-resource.ts";
import { resourcesOf } from "./mcp-resources.ts";
import { skillsOf } from "./mcp-skills.ts";
import { isTaskOnly, namesOf, toolOf } from "./mcp-tool.ts";
import { serverPoolOf } from "./server-pool.ts";
import { headerFaultOf } from "./mcp-tool-headers.ts";
import { loadTaskSdk } from "./task-sdk.ts";
import type { ToolSource } from "./tool-source.ts";

/** The tools, resources and prompts of an MCP server. */
export interface McpTools extends McpResources {
  /** For `tools` of agents, in the server's order. They do not change while the process runs. */
  readonly tools: readonly Tool<JsonObject>[];
  /** Tools of the server that are not among `tools`, each with the reason, and parts of schemas that are not checked. */
  readonly warnings: readonly string[];
  /** The server's skills, for `skills()` of `troupe/kit`. They are listed when that asks for them. */
  readonly skills: SkillSource;
  /** Logins of people, for servers with `auth: { oauth }`. */
  readonly logins: McpLogins;
  /**
   * Ends all connections, and the server's processes, for ever: later calls fail without being sent. Runtimes with these tools close
   * idle connections by themselves in `shutdown()`.
   */
  close(): Promise<void>;
  /** As `close()`, for `await using`. */
  [Symbol.asyncDispose](): Promise<void>;
}

/**
 * Connects to an MCP server and returns its tools. Calls of one `actorId` share a connection; if it is lost, the next call opens
 * another. Needs the package `@modelcontextprotocol/client`. Rejects with `InvalidInputError` for invalid options and for settings of tools that the
 * server does not have, with `UnsupportedError` if the package is not installed, with `McpAuthorizationError` if listing needs
 * a login, and with `McpServerError` if the server cannot be reached within `connectTimeoutMs`.
 */
export async function mcp(options: McpOptions): Promise<McpTools> {
  const given = mcpOptionsOf(options);
  const secrets = new McpSecrets(given);
  const pins = given.pin === undefined ? undefined : new McpPins(given, secrets.redact);
  const watch = new ListWatch(given, secrets.redact);
  const { pool, authorization } = await serverPoolOf(given, secrets, pins ?? watch);
  try {
    const listed =
      pins?.tools ?? (await pool.listTools(NO_OWNER, AbortSignal.timeout(given.connectTimeoutMs ?? 30_000)));
    watch.compareWith(listed);
    const tasks = listed.some(isTaskOnly) ? await loadTaskSdk() : undefined;
    const forget = forgetLoginsOf(given, authorization && ((actorId) => authorization.login(actorId)));
    const { tools, warnings } = toolsOf({ options: given, pool, secrets, tasks, authorization, forget }, listed);
    const close = async (): Promise<void> => await pool.close();
    return Object.freeze({
      tools: Object.freeze(tools),
      logins: loginsOf(given, authorization && ((actorId) => authorization.login(actorId))),
      warnings: Object.freeze(warnings.map((warning) => visible(secrets.redact(warning)))),
      ...resourcesOf({ options: given, pool, secrets }),
      skills: skillsOf({ options: given, pool, secrets, authorization, forget }),
      close,
      [Symbol.asyncDispose]: close,
    });
  } catch (error) {
    await pool.close();
    if (error instanceof McpAuthorizationError) throw error;
    if (error instanceof InvalidInputError) throw secrets.redacted(error);
    const message = `mcp("${given.name}"): the server's tools cannot be listed: ${wordsOf(error)}`;
    throw secrets.redacted(new McpServerError(message));
  }
}

/**
 * The logins of a server, without a connection to it: for a login before `mcp()`, and for the program with the redirect's route. Takes
 * the options of `mcp()`; rejects like it for invalid ones.
 */
export async function mcpLogins(options: McpOptions): Promise<McpLogins> {
  const given = mcpOptionsOf(options);
  if (given.auth?.oauth === undefined) throw noLogins(given.name);
  const secrets = new McpSecrets(given);
  const authorization = new McpAuthorization(await loadSdk(), given, { auth: given.auth, secrets });
  return loginsOf(given, (actorId) => authorization.login(actorId));
}

function toolsOf(
  source: ToolSource,
  ofServer: readonly ListedTool[],
): { tools: Tool<JsonObject>[]; warnings: string[] } {
  const all = source.options.resourceTools === true ? [...ofServer, ...resourceTools] : ofServer;
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
    if (source.secrets.redact(one.name) !== one.name)
      warnings.push("A tool is left out: its name contains a secret of this connection.");
    else if (name === undefined) warnings.push(`The tool "${one.name}" is listed twice; the first is used.`);
    else if (isTaskOnly(one) && source.tasks === undefined)
      warnings.push(
        `The tool "${one.name}" is left out: it runs only as a task, which needs the package "@modelcontextprotocol/ext-tasks": ` +
          "npm install @modelcontextprotocol/ext-tasks",
      );
    else if (source.options.url !== undefined && headerFaultOf(one.inputSchema) !== undefined)
      warnings.push(
        `The tool "${one.name}" is left out: its arguments for HTTP headers are invalid, ${headerFaultOf(one.inputSchema)}.`,
      );
    else {
      const tool = toolOf(source, one, name);
      tools.push(tool);
      for (const fragment of tool.unchecked ?? [])
        warnings.push(`The tool "${one.name}" is not fully checked: ${fragment}`);
    }
  }
  return { tools, warnings };
}
