import { resolve } from "node:path";
import {
  flagRule,
  listRule,
  nameRule,
  optionsOf,
  type OptionsSchema,
  reading,
  recordRule,
  ruleOf,
  shellWord,
} from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { JsonObject } from "../state/index.ts";
import { redactorOf, type Tool } from "../tools/index.ts";
import { tokensRule } from "./mcp-auth-options.ts";
import { McpAuthorizationError } from "./mcp-authorization-error.ts";
import { type ConfiguredServer, type McpServerOverride, readMcpConfig } from "./mcp-config.ts";
import { wordsOf } from "./mcp-errors.ts";
import { hiddenTextRule, lockRule } from "./mcp-options.ts";
import { McpServerError } from "./mcp-server-error.ts";
import type { McpTokenStore } from "./mcp-token-store.ts";
import type { McpLogins } from "./mcp-logins.ts";
import { mcp, mcpLogins, type McpTools } from "./mcp.ts";

/** Options of `mcpFromConfig()`. */
export interface McpConfigOptions {
  /** Values of variables such as `${TOKEN}`. Default `process.env`. */
  readonly environment?: Readonly<Record<string, string | undefined>> | undefined;
  /** Values of inputs such as `${input:token}`, by id. Default: `TROUPE_INPUT_<ID>` of the environment, then the input's own default. */
  readonly inputs?: Readonly<Record<string, string>> | undefined;
  /**
   * Lock file with the pinned definitions, relative to the working directory; `false` for none, also for servers that name one. Default: the
   * server's own `troupe.pin`, else `mcp.lock.json` next to the configuration if it exists.
   */
  readonly pin?: string | URL | false | undefined;
  /**
   * More options of single servers by their names in the file, such as functions; they replace those of the file. `false` leaves a server
   * out. Default: none.
   */
  readonly servers?: Readonly<Record<string, McpServerOverride | false>> | undefined;
  /** Names of the servers in the file; the others are not started. Default: all. */
  readonly only?: readonly string[] | undefined;
  /**
   * Where the logins of servers with `troupe.auth.oauth` in the file are kept, such as `fileMcpTokens()`; required for them. Actors have
   * logins of their own. Default: none.
   */
  readonly tokens?: McpTokenStore | undefined;
  /** Whether servers that cannot be used are left out, and listed in `broken`; otherwise they are an error. Default false. */
  readonly skipBroken?: boolean | undefined;
}

/** The tools of all servers of a configuration. */
export interface McpConfigTools {
  /** For `tools` of agents, in the order of the file. */
  readonly tools: readonly Tool<JsonObject>[];
  /** Each server's own tools, by its name in the file. */
  readonly servers: Readonly<Record<string, McpTools>>;
  /** The warnings of all servers, each with the server's name in front. */
  readonly warnings: readonly string[];
  /** Why servers are left out, by their names; only with `skipBroken`. */
  readonly broken: Readonly<Record<string, Error>>;
  /** Ends all connections; see `close` of `McpTools`. */
  readonly close: () => Promise<void>;
}

/**
 * Reads the servers of an `mcp.json` in the format of editors and returns the tools of all. Rejects with `InvalidInputError` for a file
 * that cannot be used, and, unless `skipBroken` is set, with an error that lists every server that cannot be used: `InvalidInputError` if
 * an entry is wrong, else `McpServerError`. Servers that were connected are then closed.
 */
export async function mcpFromConfig(file: string | URL, given?: McpConfigOptions): Promise<McpConfigTools> {
  const path = configFileOf(file, "mcpFromConfig()");
  const { skipBroken = false, ...options } = optionsOf<McpConfigOptions>(given, "mcpFromConfig()", configSchema);
  const configured = configuredServers(path, options);
  const opened = await Promise.all(configured.map(openedServer));
  const broken = opened.filter((one) => one.error !== undefined);
  const close = async (): Promise<void> => {
    await Promise.all(opened.map(async ({ server }) => await server?.close()));
  };
  if (broken.length > 0 && !skipBroken) {
    await close();
    throw brokenError(broken, opened.length);
  }
  const usable = opened.flatMap(({ name, server }) => (server === undefined ? [] : [{ name, server }]));
  try {
    const tools = usable.flatMap(({ server }) => server.tools);
    assertDifferentNames(tools, usable);
    return Object.freeze({
      tools: Object.freeze(tools),
      servers: Object.freeze(Object.fromEntries(usable.map(({ name, server }) => [name, server]))),
      warnings: Object.freeze(usable.flatMap(({ name, server }) => server.warnings.map((text) => `${name}: ${text}`))),
      broken: Object.freeze(Object.fromEntries(broken.map(({ name, error }) => [name, error as Error]))),
      close,
    });
  } catch (error) {
    await close();
    throw error;
  }
}

/** The servers of a file with the defaults of the options. */
export function configuredServers(
  file: string | URL,
  { environment = process.env, inputs = {}, pin, servers = {}, only, tokens }: Omit<McpConfigOptions, "skipBroken">,
): readonly ConfiguredServer[] {
  return readMcpConfig(file, { environment, inputs, pin, servers, only, tokens });
}

/**
 * The logins of a server of a configuration, without a connection to it: of one with `troupe.auth.oauth` in the file. Rejects with
 * `InvalidInputError` for a file or a server that cannot be used, or to which people do not log in.
 * @param server Its name in the file.
 */
export async function mcpLoginsFromConfig(
  file: string | URL,
  server: string,
  options?: Omit<McpConfigOptions, "only" | "pin" | "skipBroken">,
): Promise<McpLogins> {
  const of = "mcpLoginsFromConfig()";
  const path = configFileOf(file, of);
  const read = optionsOf<Omit<McpConfigOptions, "only" | "pin" | "skipBroken">>(options, of, loginsSchema);
  const name = reading(`${of}: server`, () => nameRule(server, `${of}: server`) as string);
  const [configured] = configuredServers(path, { ...read, only: [name] });
  if (configured === undefined) throw new InvalidInputError(`the server "${name}" is disabled in ${String(file)}`);
  const { options: given, where } = configured;
  if (given instanceof InvalidInputError) throw given;
  if (given.auth?.oauth === undefined) {
    const example = '"troupe": { "auth": { "oauth": {} } }';
    throw new InvalidInputError(`${where}: people do not log in to this server; with ${example} they do`);
  }
  return await mcpLogins(given);
}

interface OpenedServer {
  readonly name: string;
  readonly server?: McpTools;
  readonly error?: Error;
}

async function openedServer(configured: ConfiguredServer): Promise<OpenedServer> {
  const { name, where, options, secrets } = configured;
  if (options instanceof InvalidInputError) return { name, error: options };
  try {
    return { name, server: await mcp(options) };
  } catch (error) {
    if (error instanceof McpAuthorizationError) return { name, error: loginErrorOf(configured) };
    const words = redactorOf([...secrets])(wordsOf(error)).replace(/^mcp\([^)]*\)/, where);
    return {
      name,
      error: error instanceof InvalidInputError ? new InvalidInputError(words) : new McpServerError(words),
    };
  }
}

/** The error for a server to which a person has to log in before its tools can be listed. */
export function loginErrorOf({ name, file, where }: ConfiguredServer): McpServerError {
  const isUsual = resolve(file) === resolve("mcp.json");
  const words = [name, ...(isUsual ? [] : ["--config", file])].map(shellWord).join(" ");
  return new McpServerError(
    `${where} needs a login; run "npx troupe mcp login ${words}", or use mcpLoginsFromConfig() with the same options`,
  );
}

function brokenError(broken: readonly OpenedServer[], count: number): Error {
  const words = broken.map(({ error }) => error?.message ?? "").join("\n");
  const message = broken.length === 1 ? words : `${broken.length} of ${count} MCP servers cannot be used:\n${words}`;
  const isInput = broken.some(({ error }) => error instanceof InvalidInputError);
  return isInput ? new InvalidInputError(message) : new McpServerError(message);
}

/** Servers have different names, but tools can be renamed. */
function assertDifferentNames(
  tools: readonly Tool<JsonObject>[],
  servers: readonly { readonly name: string; readonly server: McpTools }[],
): void {
  const names = tools.map(({ name }) => name);
  const twice = names.find((name, index) => names.indexOf(name) !== index);
  if (twice === undefined) return;
  const owners = servers
    .filter(({ server }) => server.tools.some(({ name }) => name === twice))
    .map(({ name }) => name);
  throw new InvalidInputError(
    `the servers ${owners.join(" and ")} both have a tool "${twice}"; give one of the servers another "troupe": { "name" }, or the tool a rename`,
  );
}

/** The file of a configuration, checked. */
export function configFileOf(file: unknown, of: string): string | URL {
  const where = `${of}: file`;
  return reading(where, () => fileRule(file, where) as string | URL);
}

const fileRule = ruleOf(
  'a path such as "mcp.json", or a file: URL',
  (value) =>
    (typeof value === "string" && value.trim() !== "" && !value.includes("\0")) ||
    (value instanceof URL && value.protocol === "file:"),
);

export const configSchema: OptionsSchema<McpConfigOptions> = {
  rules: {
    environment: recordRule("an object of texts", (value, where) => {
      return value === undefined ? value : hiddenTextRule(value, where);
    }),
    inputs: recordRule("an object of texts by the ids of inputs", hiddenTextRule),
    pin: (value, where) => (value === false ? value : lockRule(value, where)),
    servers: recordRule("an object of options by the names of servers", (value, where) => {
      if (value === false || (typeof value === "object" && value !== null && !Array.isArray(value))) return value;
      throw new InvalidInputError(`${where} is neither options of a server nor false`);
    }),
    only: listRule("a list of names of servers", nameRule),
    tokens: tokensRule,
    skipBroken: flagRule,
  },
  instead: { env: "environment", lock: "pin", ignoreErrors: "skipBroken", store: "tokens" },
};

const { environment, inputs, servers, tokens } = configSchema.rules;
const loginsSchema: OptionsSchema<Omit<McpConfigOptions, "only" | "pin" | "skipBroken">> = {
  rules: { environment, inputs, servers, tokens },
  instead: { env: "environment", store: "tokens" },
};
