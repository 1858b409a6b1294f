import { existsSync, readFileSync } from "node:fs";
import { homedir } from "node:os";
import { basename, dirname, isAbsolute, join, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { parseEnv } from "node:util";
import { z } from "zod";
import {
  anyRule,
  flagRule,
  listRule,
  nameRule,
  oneOfRule,
  type OptionsSchema,
  optionsRule,
  parseJson,
  recordRule,
  wordsOfThrown,
} from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import { configInputSchema, serverTypes } from "./mcp-config-schema.ts";
import { plainJsonOf } from "./config-text.ts";
import type { McpTokenStore } from "./mcp-token-store.ts";
import { expandVariables, type MissingVariable, type VariableSource } from "./expand-variables.ts";
import { hiddenTextRule, type McpOptions, mcpOptionsOf, optionsSchema } from "./mcp-options.ts";

/** A server of a configuration file. */
export interface ConfiguredServer {
  /** Its name in the file. */
  readonly name: string;
  /** The file's path as it was given. */
  readonly file: string;
  /** Path of its entry, for messages: `mcp.json: mcpServers.files`. */
  readonly where: string;
  /** Its options, or why it cannot be used. */
  readonly options: McpOptions | InvalidInputError;
  /** The lock file of its definitions, which may not exist; `false` if they are not to be pinned. */
  readonly lock: string | URL | false;
  /** Values that must not be shown, by name. */
  readonly secrets: ReadonlyMap<string, string>;
}

/** How a configuration file is read. */
export interface ConfigReading {
  readonly environment: Readonly<Record<string, string | undefined>>;
  /** Values of the file's inputs. */
  readonly inputs: Readonly<Record<string, string>>;
  /** More options of single servers, which replace those of the file; `false` leaves a server out. */
  readonly servers: Readonly<Record<string, McpServerOverride | false>>;
  /** Names of the servers that are read; by default all. */
  readonly only: readonly string[] | undefined;
  /** The lock file of servers without an own `pin`; `false` for none; by default `mcp.lock.json` next to the file, if it exists. */
  readonly pin: string | URL | false | undefined;
  /** Where logins are kept that the file asks for. */
  readonly tokens: McpTokenStore | undefined;
}

/** Options of a server that its entry in a file cannot hold, such as functions. */
export type McpServerOverride = Partial<Omit<McpOptions, "name" | "command" | "url">>;

/** Options of ours in the entry of a server; editors ignore them. */
interface OwnSettings extends Pick<McpOptions, "approval" | "trust" | "tools" | "connectTimeoutMs"> {
  readonly name?: string;
  readonly pin?: string | false;
  /** As the option `auth`, but without a store and a function, and with an optional `redirectUrl`. Its texts may have variables. */
  readonly auth?: Readonly<Record<string, unknown>>;
}

interface FileServer {
  readonly type?: (typeof serverTypes)[number];
  readonly command?: string;
  readonly args?: readonly string[];
  readonly env?: Readonly<Record<string, string | number>>;
  readonly envFile?: string;
  readonly cwd?: string;
  readonly url?: string;
  readonly headers?: Readonly<Record<string, string>>;
  readonly disabled?: boolean;
  readonly troupe?: OwnSettings;
}

/**
 * The route of the redirect for logins that a file asks for, unless it gives another: the same for every login, because authorization
 * servers may compare it with the registered one.
 */
export const LOGIN_REDIRECT = "http://127.0.0.1:41711/callback";

/** The lock file next to a configuration. */
export const LOCK_FILE = "mcp.lock.json";

const { rules } = optionsSchema;

const ownSchema: OptionsSchema<OwnSettings> = {
  rules: {
    name: rules.name,
    approval: rules.approval,
    trust: rules.trust,
    tools: rules.tools,
    connectTimeoutMs: rules.connectTimeoutMs,
    pin: (value, where) => (value === false ? value : nameRule(value, where)),
    auth: recordRule('an object such as { "oauth": { "scopes": ["read"] } }', anyRule),
  },
  instead: { oauth: "auth: { oauth }", timeout: "connectTimeoutMs", lock: "pin", requireApproval: "approval" },
};

const serverSchema: OptionsSchema<FileServer> = {
  rules: {
    type: oneOfRule(...serverTypes),
    command: nameRule,
    args: listRule("a list of texts", hiddenTextRule),
    env: recordRule("an object of texts", (value, where) =>
      typeof value === "number" ? value : hiddenTextRule(value, where),
    ),
    envFile: nameRule,
    cwd: nameRule,
    url: hiddenTextRule,
    headers: recordRule("an object of texts", hiddenTextRule),
    disabled: flagRule,
    troupe: optionsRule(ownSchema),
  },
  instead: { serverUrl: "url", httpUrl: "url", environment: "env", cmd: "command", trust: "troupe.trust" },
  // Editors have further fields.
  takesOwnFields: true,
};

const serverRule = optionsRule(serverSchema);

const inputsSchema = z.array(configInputSchema);
type ConfigInput = z.infer<typeof configInputSchema>;

/** Reads the servers of a file. Throws `InvalidInputError` if the file as a whole cannot be used. */
export function readMcpConfig(file: string | URL, reading: ConfigReading): readonly ConfiguredServer[] {
  const path = resolve(file instanceof URL ? fileURLToPath(file) : file);
  const shown = file instanceof URL ? fileURLToPath(file) : file;
  const { key, entries, inputs } = contentOf(textOf(path, shown), shown);
  const { only = Object.keys(entries) } = reading;
  for (const [option, names] of Object.entries({ servers: Object.keys(reading.servers), only })) {
    const unknown = names.find((name) => !Object.hasOwn(entries, name));
    if (unknown === undefined) continue;
    throw new InvalidInputError(`${option}: ${shown} has no server "${unknown.slice(0, 80)}"; ${knownOf(entries)}`);
  }
  const folder = dirname(path);
  const source: VariableSource = {
    environment: reading.environment,
    predefined: predefinedIn(folder),
    input: (id) => inputOf(id, inputs, reading),
    isPlainInput: (id) => inputs.has(id) && inputs.get(id)?.password !== true,
  };
  return Object.entries(entries).flatMap(([name, entry]) => {
    const override = Object.hasOwn(reading.servers, name) ? reading.servers[name] : undefined;
    const where = `${shown}: ${key}${/^[\w-]+$/.test(name) ? `.${name}` : `[${JSON.stringify(name.slice(0, 80))}]`}`;
    if (override === false || !only.includes(name)) return [];
    return serverOf({ name, entry, where, shown, folder, source, override, reading }) ?? [];
  });
}

function knownOf(entries: Readonly<Record<string, unknown>>): string {
  const known = Object.keys(entries).slice(0, 50);
  return known.length === 0 ? "it has none" : `it has ${known.join(", ")}`;
}

function textOf(path: string, shown: string): string {
  try {
    return readFileSync(path, "utf8");
  } catch (error) {
    const isMissing = error instanceof Error && "code" in error && error.code === "ENOENT";
    if (isMissing) {
      const example = '{ "mcpServers": { "files": { "command": "npx", "args": ["-y", "…"] } } }';
      throw new InvalidInputError(`there is no file ${shown}; it holds the MCP servers, for instance ${example}`);
    }
    throw new InvalidInputError(`the file ${shown} cannot be read: ${wordsOfThrown(error)}`, { cause: error });
  }
}

interface ConfigContent {
  /** The key of the servers. */
  readonly key: "mcpServers" | "servers";
  readonly entries: Readonly<Record<string, unknown>>;
  /** The inputs, by id. */
  readonly inputs: ReadonlyMap<string, ConfigInput>;
}

function contentOf(text: string, shown: string): ConfigContent {
  const value = parseJson(plainJsonOf(text.replace(/^\uFEFF/, "")), { what: shown });
  const content = isObject(value) ? value : {};
  const keys = (["mcpServers", "servers"] as const).filter((key) => content[key] !== undefined);
  const [key] = keys;
  if (key === undefined || keys.length > 1) {
    const found = key === undefined ? 'neither "mcpServers" nor "servers"' : 'both "mcpServers" and "servers"';
    throw new InvalidInputError(`${shown} has ${found}; one of them holds the servers by their names`);
  }
  const entries = content[key];
  if (!isObject(entries)) throw new InvalidInputError(`${shown}: ${key} is not an object of servers by their names`);
  const inputs = inputsSchema.safeParse(content["inputs"] ?? []);
  if (!inputs.success) {
    throw new InvalidInputError(`${shown}: inputs is not a list of objects { id, type, description, default }`);
  }
  return { key, entries, inputs: new Map(inputs.data.map((input) => [input.id, input])) };
}

function isObject(given: unknown): given is Readonly<Record<string, unknown>> {
  return typeof given === "object" && given !== null && !Array.isArray(given);
}

function inputOf(
  id: string,
  known: ReadonlyMap<string, ConfigInput>,
  { inputs, environment }: ConfigReading,
): string | undefined {
  if (Object.hasOwn(inputs, id)) return inputs[id];
  return environment[inputVariable(id)] ?? known.get(id)?.default;
}

/** The environment variable with the value of an input. */
export function inputVariable(id: string): string {
  return `TROUPE_INPUT_${id.toUpperCase().replaceAll(/[^A-Z0-9]/g, "_")}`;
}

/** Names that editors define. The folder of the project is that of the file, or above an editor's own folder. */
function predefinedIn(folder: string): Readonly<Record<string, string>> {
  const project = [".vscode", ".cursor"].includes(basename(folder)) ? dirname(folder) : folder;
  return {
    workspaceFolder: project,
    workspaceFolderBasename: basename(project),
    userHome: homedir(),
    pathSeparator: sep,
    "/": sep,
  };
}

interface ServerEntry {
  readonly name: string;
  readonly entry: unknown;
  readonly where: string;
  /** The file's path as it was given. */
  readonly shown: string;
  readonly folder: string;
  readonly source: VariableSource;
  readonly override: McpServerOverride | undefined;
  readonly reading: Pick<ConfigReading, "pin" | "tokens">;
}

/** `undefined` for a server that is disabled. */
function serverOf(given: ServerEntry): ConfiguredServer | undefined {
  const { name, where, shown: file } = given;
  const secrets = new Map<string, string>();
  let lock = lockOf(undefined, given);
  try {
    if (!isObject(given.entry)) throw new InvalidInputError(`${where} is not an object { command, args } or { url }`);
    const entry = serverRule(given.entry, where) as FileServer;
    if (entry.disabled === true) return undefined;
    lock = lockOf(entry.troupe?.pin, given);
    const isPinned =
      lock !== false && (given.reading.pin !== undefined || entry.troupe?.pin !== undefined || existsSync(lock));
    const pinned = isPinned ? { pin: lock as string | URL } : {};
    return { name, file, where, options: optionsOfEntry(entry, { ...given, secrets, pinned }), lock, secrets };
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    return { name, file, where, options: error, lock, secrets };
  }
}

interface EntryReading extends ServerEntry {
  readonly secrets: Map<string, string>;
  /** The lock file, if its definitions are pinned. */
  readonly pinned: Pick<McpOptions, "pin">;
}

function optionsOfEntry(entry: FileServer, given: EntryReading): McpOptions {
  const { name, where, folder, override, secrets, pinned } = given;
  const expander = new Expander(where, given.source, secrets);
  const { troupe = {}, type } = entry;
  const { name: ownName, pin: _pin, auth, ...settings } = troupe;
  const { command, url, args, headers } = entry;
  checkType(type, entry, where);
  const expanded = {
    ...(command === undefined ? {} : { command: expander.text(command, "command") }),
    ...(args === undefined ? {} : { args: args.map((text, index) => expander.text(text, `args[${index}]`)) }),
    ...(url === undefined ? {} : { url: expander.text(url, "url") }),
    ...(headers === undefined ? {} : { headers: expander.record(headers, "headers") }),
    ...envOf(entry, expander, folder),
    ...(entry.cwd === undefined ? {} : { cwd: resolve(folder, expander.text(entry.cwd, "cwd")) }),
  };
  const authorized =
    auth === undefined || override?.auth !== undefined
      ? {}
      : { auth: authOf(expander.texts(auth, "troupe.auth"), given) };
  expander.assertComplete();
  const options = {
    name: ownName ?? name,
    ...expanded,
    ...settings,
    ...authorized,
    ...pinned,
    ...(secrets.size === 0 ? {} : { secrets: Object.fromEntries(secrets) }),
    ...override,
  };
  if (ownName === undefined && !isServerName(name)) {
    throw new InvalidInputError(
      `${where}: the name cannot begin the names of tools; give another with "troupe": { "name": "docs" }`,
    );
  }
  return checked(options as McpOptions, where);
}

/** The option `auth`, of which `mcp()` checks the rest. */
function authOf({ oauth, ...others }: Readonly<Record<string, unknown>>, { where, reading }: EntryReading): unknown {
  if (!isObject(oauth)) return { ...others, ...(oauth === undefined ? {} : { oauth }) };
  if (Object.hasOwn(oauth, "store")) {
    throw new InvalidInputError(`${where}.troupe.auth.oauth.store has no place in a file; leave it out`);
  }
  if (reading.tokens === undefined) {
    throw new InvalidInputError(
      `${where}.troupe.auth.oauth needs a store for tokens; give the option tokens, such as fileMcpTokens()`,
    );
  }
  return { ...others, oauth: { redirectUrl: LOGIN_REDIRECT, ...oauth, store: reading.tokens } };
}

function isServerName(name: string): boolean {
  try {
    rules.name(name, "name");
    return true;
  } catch {
    return false;
  }
}

/** The options, checked as those of `mcp()`; an error names the entry. */
function checked(options: McpOptions, where: string): McpOptions {
  try {
    return mcpOptionsOf(options);
  } catch (error) {
    if (!(error instanceof InvalidInputError)) throw error;
    throw new InvalidInputError(error.message.replace(/^mcp\([^)]*\)/, where), { cause: error });
  }
}

function checkType(type: FileServer["type"], { command, url }: FileServer, where: string): void {
  if (type === undefined) return;
  const [needed, value] = type === "stdio" ? ["command", command] : ["url", url];
  if (value !== undefined) return;
  throw new InvalidInputError(`${where}.type is "${type}", but the server has no ${needed}`);
}

function envOf(
  { env = {}, envFile }: FileServer,
  expander: Expander,
  folder: string,
): { readonly env?: Readonly<Record<string, string>> } {
  const texts = Object.fromEntries(Object.entries(env).map(([name, value]) => [name, String(value)]));
  const given = expander.record(texts, "env");
  if (envFile === undefined) return Object.keys(given).length === 0 ? {} : { env: given };
  return { env: { ...variablesOf(resolve(folder, expander.text(envFile, "envFile")), expander.where), ...given } };
}

function variablesOf(path: string, where: string): Record<string, string> {
  try {
    return { ...parseEnv(readFileSync(path, "utf8")) } as Record<string, string>;
  } catch (error) {
    const code = error instanceof Error && "code" in error ? String(error.code) : wordsOfThrown(error);
    throw new InvalidInputError(
      `${where}.envFile cannot be read (${code}); give the path of a file of NAME=value lines`,
    );
  }
}

/** The lock file of a server. Paths in a configuration are relative to its folder. */
function lockOf(own: string | false | undefined, { shown, reading: { pin } }: ServerEntry): string | URL | false {
  if (own === false || pin === false) return false;
  if (pin !== undefined) return pin;
  const path = own ?? LOCK_FILE;
  return isAbsolute(path) ? path : join(dirname(shown), path);
}

/** Replaces the variables of an entry, and collects those without a value and the secrets. */
class Expander {
  readonly where: string;
  readonly #source: VariableSource;
  readonly #secrets: Map<string, string>;
  readonly #missing: { readonly field: string; readonly variable: MissingVariable }[] = [];

  constructor(where: string, source: VariableSource, secrets: Map<string, string>) {
    this.where = where;
    this.#source = source;
    this.#secrets = secrets;
  }

  text(text: string, field: string): string {
    const { text: expanded, used, missing } = expandVariables(text, this.#source);
    for (const variable of missing) this.#missing.push({ field, variable });
    for (const { name, value, isSecret } of used) if (isSecret) this.#secrets.set(name, value);
    return expanded;
  }

  record(record: Readonly<Record<string, string>>, field: string): Readonly<Record<string, string>> {
    const entries = Object.entries(record);
    return Object.fromEntries(entries.map(([name, text]) => [name, this.text(text, `${field}.${name.slice(0, 80)}`)]));
  }

  /** An object with its texts at any depth. */
  texts(given: Readonly<Record<string, unknown>>, field: string): Readonly<Record<string, unknown>> {
    const entries = Object.entries(given).map(([name, value]) => [
      name,
      this.#value(value, `${field}.${name.slice(0, 80)}`),
    ]);
    return Object.fromEntries(entries) as Readonly<Record<string, unknown>>;
  }

  #value(value: unknown, field: string): unknown {
    if (typeof value === "string") return this.text(value, field);
    if (Array.isArray(value)) return value.map((one, index) => this.#value(one, `${field}[${index}]`));
    return isObject(value) ? this.texts(value, field) : value;
  }

  assertComplete(): void {
    if (this.#missing.length === 0) return;
    const problems = this.#missing.map(({ field, variable: { text, why } }) => {
      const shown = text.slice(0, 80);
      if (why === "unsupported") return `${field} has ${shown}, which only an editor can resolve`;
      if (why === "unset")
        return `${field} has ${shown}, which is not set; set it, or write a default: \${NAME:-default}`;
      const id = shown.slice("${input:".length, -1);
      return `${field} has ${shown}, an input without a value; set ${inputVariable(id)}, or give it a default`;
    });
    throw new InvalidInputError(`${this.where}: ${problems.join("; ")}`);
  }
}
