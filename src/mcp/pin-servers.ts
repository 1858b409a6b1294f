import { optionsOf, type OptionsSchema } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { EffectClass } from "../state/index.ts";
import { McpAuthorizationError } from "./mcp-authorization-error.ts";
import { changesOf, type ToolChange } from "./definition-changes.ts";
import type { ConfiguredServer } from "./mcp-config.ts";
import { wordsOf } from "./mcp-errors.ts";
import {
  configFileOf,
  configSchema,
  configuredServers,
  loginErrorOf,
  type McpConfigOptions,
} from "./mcp-from-config.ts";
import { toolListOf } from "./mcp-lists.ts";
import { lockFileName, type McpEra, type McpLock, type PinnedServer, readLock, writeLock } from "./mcp-lock.ts";
import { lockRule, type McpOptions, mcpOptionsOf } from "./mcp-options.ts";
import { NO_OWNER } from "./mcp-pool.ts";
import { McpSecrets } from "./mcp-secrets.ts";
import { McpServerError } from "./mcp-server-error.ts";
import { rulesOf, namesOf } from "./mcp-tool.ts";
import { type PinnedTool, pinnedToolsOf } from "./pinned-tool.ts";
import { serverPoolOf } from "./server-pool.ts";

/** Options of `checkMcpPins()` and `pinMcp()`. */
export interface McpPinOptions extends Omit<McpConfigOptions, "pin" | "skipBroken"> {
  /** The lock file of all servers, relative to the working directory. Default: each server's own, else `mcp.lock.json` next to the configuration. */
  readonly lock?: string | URL | undefined;
}

/** A tool of a server, and how it compares with the lock file. */
export interface McpToolReport {
  /** The server's name for it. */
  readonly name: string;
  /** The name for the model; `null` for a tool that agents do not get. */
  readonly toolName: string | null;
  /** Decides whether an interrupted call may be repeated. */
  readonly effect: EffectClass;
  /** Whether a person has to approve calls. */
  readonly needsApproval: boolean | "by arguments";
  /** `unpinned`: the lock file does not have the server. `added`, `changed`, `removed`: since it was pinned. */
  readonly pin: "pinned" | "unpinned" | ToolChange["kind"];
}

/** A server, and how its definitions compare with the lock file. */
export interface McpServerReport {
  /** Its name in the configuration. */
  readonly server: string;
  /** The lock file; `null` if its definitions are not to be pinned. */
  readonly lock: string | null;
  /** Why it cannot be used; its tools are then unknown. */
  readonly error?: Error;
  /** The era of the protocol that it uses. */
  readonly era?: McpEra;
  /** The pinned era, if it is another. */
  readonly pinnedEra?: McpEra;
  /** Sorted by name. */
  readonly tools: readonly McpToolReport[];
  /** Differences from the pinned definitions, or all tools as added if there are none. */
  readonly changes: readonly ToolChange[];
  /** Whether the lock file has exactly these definitions. */
  readonly isPinned: boolean;
}

/**
 * Connects to the servers of a configuration, and compares their definitions with the lock file. A server that cannot be used has an
 * `error` in its report. Throws `InvalidInputError` for a configuration or lock file that cannot be used.
 */
export async function checkMcpPins(file: string | URL, given?: McpPinOptions): Promise<readonly McpServerReport[]> {
  const compared = await comparedServers(file, given, "checkMcpPins()");
  return compared.map(({ report }) => report);
}

/**
 * Writes the definitions of the servers of a configuration to the lock file, atomically, and returns how they differed. Nothing is written
 * unless all servers can be used: rejects with an error that lists the others. Servers with `"pin": false` are left out.
 */
export async function pinMcp(file: string | URL, given?: McpPinOptions): Promise<readonly McpServerReport[]> {
  const compared = await comparedServers(file, given, "pinMcp()");
  const broken = compared.flatMap(({ report }) => report.error ?? []);
  if (broken.length > 0) {
    const words = broken.map(({ message }) => message).join("\n");
    const isInput = broken.every((error) => error instanceof InvalidInputError);
    throw isInput ? new InvalidInputError(words) : new McpServerError(words);
  }
  const files = new Map<string, Map<string, PinnedServer>>();
  for (const { report, live } of compared) {
    if (report.lock === null || live === undefined) continue;
    const lock = files.get(report.lock) ?? new Map(readLock(report.lock));
    files.set(report.lock, lock.set(live.name, { era: live.era, tools: live.tools }));
  }
  for (const [path, lock] of files) await writeLock(path, lock satisfies McpLock);
  return compared.map(({ report }) => report);
}

interface LiveServer {
  /** Its name in the lock file. */
  readonly name: string;
  readonly era: McpEra;
  readonly tools: readonly PinnedTool[];
}

interface ComparedServer {
  readonly report: McpServerReport;
  readonly live?: LiveServer;
}

async function comparedServers(
  file: string | URL,
  given: McpPinOptions | undefined,
  of: string,
): Promise<readonly ComparedServer[]> {
  const path = configFileOf(file, of);
  const { lock, ...options } = optionsOf<McpPinOptions>(given, of, pinSchema);
  const configured = configuredServers(path, { ...options, pin: lock });
  // Lock files that cannot be used are an error before any program is started.
  const locks = new Map<string, McpLock | undefined>();
  for (const { lock: one } of configured) {
    if (one !== false && !locks.has(lockFileName(one))) locks.set(lockFileName(one), readLock(one));
  }
  return await Promise.all(configured.map((server) => compared(server, locks)));
}

async function compared(
  configured: ConfiguredServer,
  locks: ReadonlyMap<string, McpLock | undefined>,
): Promise<ComparedServer> {
  const { name: server, where, options } = configured;
  const lock = configured.lock === false ? null : lockFileName(configured.lock);
  const failed = (error: Error): ComparedServer => ({
    report: { server, lock, error, tools: [], changes: [], isPinned: false },
  });
  if (options instanceof InvalidInputError) return failed(options);
  const secrets = new McpSecrets(options);
  try {
    const { era, listed } = await definitionsOf(options, secrets);
    const { tools } = pinnedToolsOf(listed, secrets.redact);
    const pins = lock === null ? undefined : locks.get(lock)?.get(options.name);
    const changes = changesOf(pins?.tools ?? [], tools);
    const isPinned = pins !== undefined && changes.length === 0 && pins.era === era;
    const report: McpServerReport = {
      server,
      lock,
      era,
      ...(pins === undefined || pins.era === era ? {} : { pinnedEra: pins.era }),
      tools: toolReports({ options, live: tools, pins: pins?.tools, changes }),
      changes,
      isPinned,
    };
    return { report, live: { name: options.name, era, tools } };
  } catch (error) {
    if (error instanceof McpAuthorizationError) return failed(loginErrorOf(configured));
    const words = secrets.redact(`${where}: ${wordsOf(error)}`);
    return failed(error instanceof InvalidInputError ? new InvalidInputError(words) : new McpServerError(words));
  }
}

/** Connects, reads the definitions, and closes the connection. */
async function definitionsOf(options: McpOptions, secrets: McpSecrets) {
  const { pool } = await serverPoolOf(mcpOptionsOf(options), secrets);
  const signal = AbortSignal.timeout(options.connectTimeoutMs ?? 30_000);
  try {
    return await pool.use(NO_OWNER, signal, async ({ client }) => ({
      era: (client.getProtocolEra() === "modern" ? "modern" : "legacy") satisfies McpEra as McpEra,
      listed: await toolListOf(client, signal),
    }));
  } finally {
    await pool.close();
  }
}

function toolReports(given: {
  readonly options: McpOptions;
  readonly live: readonly PinnedTool[];
  readonly pins: readonly PinnedTool[] | undefined;
  readonly changes: readonly ToolChange[];
}): McpToolReport[] {
  const { options, live, pins, changes } = given;
  const kinds = new Map(changes.map(({ name, kind }) => [name, kind]));
  // What agents get: with a pin, the pinned definitions.
  const gone = (pins ?? []).filter(({ name }) => live.every((tool) => tool.name !== name));
  const all = [...live, ...gone].toSorted((one, other) => (one.name < other.name ? -1 : 1));
  const offered = (pins ?? live).filter(({ name }) => options.tools?.[name] !== false);
  const toolNames = new Map(namesOf(options, offered).map((toolName, index) => [offered[index]?.name, toolName]));
  return all.map((tool) => ({
    name: tool.name,
    toolName: toolNames.get(tool.name) ?? null,
    ...rulesOf(options, pins?.find(({ name }) => name === tool.name) ?? tool),
    pin: pins === undefined ? "unpinned" : (kinds.get(tool.name) ?? "pinned"),
  }));
}

const { pin: _pin, skipBroken: _skipBroken, ...configRules } = configSchema.rules;

const pinSchema: OptionsSchema<McpPinOptions> = {
  rules: { ...configRules, lock: lockRule },
  instead: { env: "environment", pin: "lock", file: "lock" },
};
