import type { Path } from "../../base/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import type { McpOptions, McpServerOverride, McpToolOptions, McpTools } from "../../mcp/index.ts";
import type { TealMcpServer } from "./agent-file-schema.ts";
import type { TealFile } from "./agent-yaml.ts";

/** The servers of a file, connected. */
export interface TealMcpTools {
  readonly tools: McpTools["tools"];
  readonly close: () => Promise<void>;
}

const noServers: TealMcpTools = { tools: [], close: async () => undefined };

/**
 * Connects to the MCP servers of an agent file. `given`: further options by the servers' names.
 * @throws InvalidInputError that names the server by its path in the file; McpServerError if a server cannot be reached.
 */
export async function connectMcpServers(
  file: TealFile,
  given: Readonly<Record<string, McpServerOverride>>,
): Promise<TealMcpTools> {
  const servers = file.agent.mcp_servers ?? [];
  const unknown = Object.keys(given).find((name) => servers.every((server) => server.name !== name));
  if (unknown !== undefined) {
    const known = servers.map(({ name }) => name).join(", ") || "none";
    throw new InvalidInputError(`loadTealAgent(): mcp: the file has no MCP server "${unknown}"; it has ${known}`);
  }
  if (servers.length === 0) return noServers;
  const options = servers.map((server, index) => {
    const field: Path = ["spec", "agent", "mcp_servers", index];
    if (servers.findIndex(({ name }) => name === server.name) !== index) {
      throw file.problem([...field, "name"], `is "${server.name}" a second time`);
    }
    return optionsOf(file, { server, field, override: given[server.name] ?? {} });
  });
  // Loaded only here: other agents do not need it.
  const { mcp } = await import("../../mcp/index.ts");
  const opened = await Promise.allSettled(options.map((one) => mcp(one)));
  const connected = opened.flatMap((one) => (one.status === "fulfilled" ? [one.value] : []));
  const close = async (): Promise<void> => {
    await Promise.all(connected.map((server) => server.close()));
  };
  const failed = opened.findIndex(({ status }) => status === "rejected");
  const failure = opened[failed];
  if (failure?.status !== "rejected") return { tools: connected.flatMap(({ tools }) => tools), close };
  await close();
  if (!(failure.reason instanceof InvalidInputError)) throw failure.reason;
  throw file.problem(["spec", "agent", "mcp_servers", failed], `cannot be used: ${failure.reason.message}`);
}

interface ServerField {
  readonly server: TealMcpServer;
  readonly field: Path;
  readonly override: McpServerOverride;
}

function optionsOf(file: TealFile, { server, field, override }: ServerField): McpOptions {
  const { name, transport, command, args, env, url, headers, timeout } = server;
  const isStdio = transport === "stdio" || (transport !== "http" && typeof command === "string");
  if (transport == null && command != null && url != null) {
    throw file.problem(field, 'has both command and url; set transport to "stdio" or "http"');
  }
  const needed = isStdio ? command : url;
  if (needed == null) throw file.problem(field, `has no ${isStdio ? "command" : "url"}`);
  for (const part of ["user_id_header", "user_id_source"] as const) {
    if (server[part] != null) {
      throw file.problem([...field, part], "is not supported: give the header from code, with loadTealAgent({ mcp })");
    }
  }
  if (server.verify_ssl === false) {
    throw file.problem(
      [...field, "verify_ssl"],
      "is false: name the certificate authority in NODE_EXTRA_CA_CERTS instead",
    );
  }
  if (
    (server.auth_server != null || server.oauth_client_id != null) &&
    !("auth" in override || "headers" in override)
  ) {
    throw file.problem(
      [...field, server.auth_server == null ? "oauth_client_id" : "auth_server"],
      `needs a store for tokens, which only code can give: loadTealAgent(file, { mcp: { "${name}": { auth } } })`,
    );
  }
  return {
    name,
    ...(isStdio
      ? { command: needed, args: args ?? [], ...(env == null ? {} : { env }) }
      : { url: needed, ...(headers == null ? {} : { headers }) }),
    ...(timeout == null ? {} : { connectTimeoutMs: Math.ceil(timeout * 1_000) }),
    ...trustOf(server),
    tools: toolsOf(server),
    ...override,
  };
}

/** The original asks a person before every call of a server that is marked as untrusted, and before writes of a sandboxed one. */
function trustOf({ trust_level }: TealMcpServer): Pick<McpOptions, "trust" | "approval"> {
  if (trust_level === "trusted") return { trust: true };
  if (trust_level === "sandboxed") return { approval: "writes" };
  return trust_level === "untrusted" ? { approval: "always" } : {};
}

function toolsOf({ tool_governance_overrides }: TealMcpServer): Readonly<Record<string, McpToolOptions>> {
  const rules = Object.entries(tool_governance_overrides ?? {});
  return Object.fromEntries(
    rules.flatMap(([tool, { requires_hitl }]) =>
      requires_hitl == null ? [] : [[tool, { needsApproval: requires_hitl }] as const],
    ),
  );
}
