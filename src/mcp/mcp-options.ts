import {
  anyRule,
  flagRule,
  listRule,
  nameRule,
  oneOfRule,
  optionsOf,
  optionsRule,
  type OptionRule,
  type OptionsSchema,
  recordRule,
  ruleOf,
  textRule,
  wholeNumberRule,
} from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { type McpAuth, mcpAuthRule } from "./mcp-auth-options.ts";
import type { EffectClass, JsonObject } from "../state/index.ts";
import type { RunContext } from "../tools/index.ts";
import { inputOptionRules, type McpInputOptions } from "./mcp-input-options.ts";

/** Headers of requests to an MCP server. */
export type McpHeaders = Readonly<Record<string, string>>;

/** On whose behalf a connection to an MCP server is used. */
export interface McpOwner {
  /** The actor who started the turn; `null` without one, and while `mcp()` reads the definitions. */
  readonly actorId: string | null;
}

/** Settings of one tool of an MCP server. */
export interface McpToolOptions {
  /**
   * Decides whether a call with an unknown outcome may be repeated. Default: `keyed` with an `idempotencyArgument`; otherwise `once`,
   * unless the server is trusted and the tool's annotations state more.
   */
  readonly effect?: EffectClass | undefined;
  /** Whether a person has to approve a call; a function gets the checked arguments. Default: by `approval` of the server. */
  readonly needsApproval?: boolean | ((args: JsonObject, run: RunContext) => boolean | Promise<boolean>) | undefined;
  /**
   * Name of a text argument in which the server takes an idempotency key. Every call sends `run.idempotencyKey` in it; the model does not
   * see the argument. Default: none.
   */
  readonly idempotencyArgument?: string | undefined;
  /** Milliseconds per attempt. Default 60,000; 3,600,000 for a tool that runs only as a task. */
  readonly timeoutMs?: number | undefined;
  /** The tool's name for the model: letters, digits, `_` and `-`; 1 to 64 characters. Default: `<server>__<tool>`. */
  readonly rename?: string | undefined;
}

/** Options of `mcp()`. One of `command` and `url` is required. */
export interface McpOptions extends McpInputOptions {
  /** Begins the names of the tools: 1 to 32 letters, digits, `_` and `-`, without `__`, and with a letter or digit at both ends. */
  readonly name: string;
  /** Program that runs the server on stdin and stdout. Default: none. */
  readonly command?: string | undefined;
  /** Arguments of `command`. Default: none. */
  readonly args?: readonly string[] | undefined;
  /** Environment variables of `command`, besides the few that are always passed, such as `PATH` and `HOME`. Default: none. */
  readonly env?: Readonly<Record<string, string>> | undefined;
  /** Working directory of `command`. Default: that of this process. */
  readonly cwd?: string | undefined;
  /** Address of the server, for Streamable HTTP, or for SSE if the server does not offer the former. Default: none. */
  readonly url?: string | undefined;
  /**
   * Headers of every request to `url`. A function is called before each request with the owner of the connection, so that owners can have
   * credentials of their own. Default: none.
   */
  readonly headers?: McpHeaders | ((owner: McpOwner) => McpHeaders | Promise<McpHeaders>) | undefined;
  /** How requests to `url` are authorized: a bearer token, logins of people by OAuth, or a login of the program. Default: none. */
  readonly auth?: McpAuth | undefined;
  /**
   * Calls that a person has to approve. `destructive`: of tools that the server declares destructive. `writes`: of all tools but those
   * that a trusted server declares read-only. `always`: all. `never`: none. Default `destructive`.
   */
  readonly approval?: "destructive" | "writes" | "always" | "never" | undefined;
  /**
   * Whether annotations of the server may loosen rules: read-only tools then have the effect `none`, idempotent ones `keyed`.
   * Default false.
   */
  readonly trust?: boolean | undefined;
  /** Settings of single tools by the server's names; `false` leaves a tool out. Default: none. */
  readonly tools?: Readonly<Record<string, McpToolOptions | false>> | undefined;
  /**
   * The lock file with the server's pinned definitions: a path relative to the working directory, or a `file:` URL. Nothing then connects
   * before the first call, the tools are those of the file, and calls of a tool that the server has changed since are refused. Default: none.
   */
  readonly pin?: string | URL | undefined;
  /**
   * Further texts, by names for them, that must not appear in results, errors and lock files, for instance a token in `args`. Values of
   * headers and variables whose names stand for secrets need not be listed. Default: none.
   */
  readonly secrets?: Readonly<Record<string, string>> | undefined;
  /**
   * Whether `tools` also has `<server>__list_resources` and `<server>__read_resource`, with which the model reads the server's resources.
   * Their effect is `none` with `trust`, else `once`; `tools` has their settings by the names `list_resources` and `read_resource`.
   * Default false.
   */
  readonly resourceTools?: boolean | undefined;
  /** Milliseconds for connecting, and for `mcp()` as a whole. Default 30,000. */
  readonly connectTimeoutMs?: number | undefined;
  /** Milliseconds without a call after which a connection is closed; the next call opens another. Default 300,000. */
  readonly idleMs?: number | undefined;
  /**
   * How many connections, and processes of `command`, may be open at a time: each owner has one. A call of one owner more closes the
   * connection that was idle longest, or waits for one. Default 32.
   */
  readonly maxConnections?: number | undefined;
}

/** Validates the options. Throws `InvalidInputError` that describes the problem. */
export function mcpOptionsOf(options: McpOptions): McpOptions {
  const given = optionsOf<McpOptions>(options, "mcp()", optionsSchema);
  const of = `mcp("${given.name}")`;
  if ((given.command === undefined) === (given.url === undefined)) {
    throw new InvalidInputError(`${of}: give either command or url`);
  }
  const [others, needed] =
    given.command === undefined
      ? ([["args", "env", "cwd"], "command"] as const)
      : ([["headers", "auth"], "url"] as const);
  for (const other of others) {
    if (given[other] === undefined) continue;
    throw new InvalidInputError(`${of}: ${other} has no use without ${needed}; leave it out`);
  }
  if (given.auth !== undefined && hasAuthorization(given.headers)) {
    throw new InvalidInputError(`${of}: give either auth or the header Authorization`);
  }
  return given;
}

function hasAuthorization(headers: McpOptions["headers"]): boolean {
  return typeof headers === "object" && Object.keys(headers).some((name) => name.toLowerCase() === "authorization");
}

/** Names that may begin the names of tools. */
export const serverNamePattern = /^(?!.*__)[a-zA-Z0-9](?:[a-zA-Z0-9_-]{0,30}[a-zA-Z0-9])?$/;
const variableRule: OptionRule = ruleOf(
  "a text without the character NUL",
  (value) => typeof value === "string" && !value.includes("\0"),
);

/** The checked variables. An error names the variable, never its value. */
function environmentRule(value: unknown, where: string): unknown {
  const variables = recordRule("an object of texts", anyRule)(value, where) as Readonly<Record<string, unknown>>;
  for (const [name, text] of Object.entries(variables)) {
    const shown = JSON.stringify(name.slice(0, 80));
    if (!/^[^=\0]+$/.test(name)) {
      throw new InvalidInputError(
        `${where} has the name ${shown}; use a name that is not empty and has no "=" and no NUL`,
      );
    }
    if (typeof text === "string" && !text.includes("\0")) continue;
    throw new InvalidInputError(`${where}[${shown}] is not valid; expected a text without the character NUL`);
  }
  return variables;
}

/** Values that configuration files have too. */
export const effects = ["none", "keyed", "once"] as const;
export const approvals = ["destructive", "writes", "always", "never"] as const;
export const renamePattern = /^[a-zA-Z0-9_-]{1,64}$/;
/** Milliseconds; the longest time that Node's timers can wait is a little more. */
export const LONGEST_MS = 2_000_000_000;

const toolOptionsRule = optionsRule<McpToolOptions>({
  rules: {
    effect: oneOfRule(...effects),
    needsApproval: ruleOf(
      "true, false or a function",
      (value) => typeof value === "boolean" || typeof value === "function",
    ),
    idempotencyArgument: nameRule,
    timeoutMs: wholeNumberRule(1, LONGEST_MS),
    rename: ruleOf(
      'a name of 1 to 64 letters, digits, "_" and "-"',
      (value) => typeof value === "string" && renamePattern.test(value),
    ),
  },
  instead: { name: "rename", timeout: "timeoutMs", approval: "needsApproval", idempotencyKey: "idempotencyArgument" },
});

/** The path of a lock file. */
export const lockRule: OptionRule = ruleOf(
  'the path of a lock file such as "mcp.lock.json", or a file: URL',
  (value) =>
    (typeof value === "string" && value.trim() !== "" && !value.includes("\0")) ||
    (value instanceof URL && value.protocol === "file:"),
);

/** A text; the error does not contain the value, which may be a secret. */
export function hiddenTextRule(value: unknown, where: string): unknown {
  if (typeof value === "string") return value;
  throw new InvalidInputError(`${where} is not a text`);
}

/** The options of a server. */
export const optionsSchema: OptionsSchema<McpOptions> = {
  rules: {
    name: ruleOf(
      'a name of 1 to 32 letters, digits, "_" and "-", without "__", and with a letter or digit at both ends',
      (value) => typeof value === "string" && serverNamePattern.test(value),
    ),
    command: (value, where) => variableRule(nameRule(value, where), where),
    args: listRule("a list of texts", variableRule),
    env: environmentRule,
    cwd: (value, where) => variableRule(nameRule(value, where), where),
    url: addressRule,
    headers: (value, where) => (typeof value === "function" ? value : headersRule(value, where)),
    auth: mcpAuthRule,
    approval: oneOfRule(...approvals),
    trust: flagRule,
    ...inputOptionRules,
    resourceTools: flagRule,
    tools: recordRule("an object of settings by the names of tools", (value, where) =>
      value === false ? value : toolOptionsRule(value, where),
    ),
    pin: lockRule,
    secrets: recordRule("an object of texts by names for them", hiddenTextRule),
    connectTimeoutMs: wholeNumberRule(1, LONGEST_MS),
    idleMs: wholeNumberRule(1, LONGEST_MS),
    maxConnections: wholeNumberRule(1, 10_000),
  },
  needed: ["name"],
  instead: {
    serverUrl: "url",
    timeout: "connectTimeoutMs",
    token: "auth: { token }",
    oauth: "auth: { oauth }",
    requireApproval: "approval",
    lock: "pin",
    lockFile: "pin",
    idleTimeoutMs: "idleMs",
    connections: "maxConnections",
  },
};

/** The checked headers. An error names the header, never its value. */
export function headersRule(value: unknown, where: string): unknown {
  const headers = recordRule("an object of texts, or a function that returns one", textRule)(
    value,
    where,
  ) as McpHeaders;
  for (const [name, text] of Object.entries(headers)) {
    if (isHeader(name, text)) continue;
    throw new InvalidInputError(`${where}[${JSON.stringify(name.slice(0, 80))}] is not a valid HTTP header`);
  }
  return headers;
}

function isHeader(name: string, text: string): boolean {
  try {
    return new Headers({ [name]: text }).has(name);
  } catch {
    return false;
  }
}

function addressRule(value: unknown, where: string): string {
  const url = typeof value === "string" && URL.canParse(value) ? new URL(value) : undefined;
  if (url && (url.protocol === "https:" || url.protocol === "http:") && url.username === "" && url.password === "") {
    return String(value);
  }
  // The address may contain a password.
  throw new InvalidInputError(`${where} must be a URL such as "https://tools.example.com/mcp", without a password`);
}
