import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import { rename, rm, stat, writeFile } from "node:fs/promises";
import { fileURLToPath } from "node:url";
import { z } from "zod";
import { describeFileError, renderPath, toJson } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { Json } from "../state/index.ts";
import { visibleJson } from "./definition-changes.ts";
import { hashOfTool, type PinnedTool } from "./pinned-tool.ts";

/** The protocol that a server was found to use. */
export type McpEra = "legacy" | "modern";

/** The pinned definitions of one server. */
export interface PinnedServer {
  readonly era: McpEra;
  /** Sorted by name. */
  readonly tools: readonly PinnedTool[];
}

/** The content of a lock file, by the names of servers. */
export type McpLock = ReadonlyMap<string, PinnedServer>;

const LOCK_VERSION = 1;
/** Largest lock file, in bytes. */
const LARGEST_LOCK = 32_000_000;

const toolSchema = z.strictObject({
  name: z.string().min(1).max(1_000),
  hash: z.string(),
  // Several lines of a text are a list, so that a reviewer sees each as a line.
  description: z.union([z.string(), z.array(z.string()).min(2)]).optional(),
  annotations: z.json().optional(),
  execution: z.json().optional(),
  inputSchema: z.json().optional(),
});

/** A lock file. `troupe schema mcp-lock` prints it as JSON Schema. */
export const mcpLockSchema = z.strictObject({
  version: z.literal(LOCK_VERSION),
  servers: z.record(z.string(), z.strictObject({ era: z.enum(["legacy", "modern"]), tools: z.array(toolSchema) })),
});

type StoredTool = z.infer<typeof toolSchema>;

/** The command that writes a lock file. */
export function pinCommand(file: string, server?: string): string {
  const words = ["npx troupe mcp pin", ...(server === undefined ? [] : [server])];
  return [...words, ...(file === "mcp.lock.json" ? [] : ["--lock", file])].join(" ");
}

/** The lock file's path as it is shown in messages. */
export function lockFileName(file: string | URL): string {
  return file instanceof URL ? fileURLToPath(file) : file;
}

/**
 * Reads a lock file. Returns `undefined` if there is none. Throws `InvalidInputError` that describes how to fix a file that is damaged
 * or was written by a newer version.
 */
export function readLock(file: string | URL): McpLock | undefined {
  const name = lockFileName(file);
  let text: string;
  try {
    text = readFileSync(file, "utf8");
  } catch (error) {
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return undefined;
    throw new InvalidInputError(`the lock file ${name} cannot be read: ${String(error)}`, { cause: error });
  }
  return parseLock(text, name);
}

/** The pinned definitions of a server. Throws `InvalidInputError` if the file or the server's part of it does not exist. */
export function readPins(file: string | URL, server: string): PinnedServer {
  const name = lockFileName(file);
  const lock = readLock(file);
  const command = pinCommand(name, server);
  if (lock === undefined) {
    throw new InvalidInputError(`mcp("${server}"): there is no lock file ${name}; write it with: ${command}`);
  }
  const pins = lock.get(server);
  if (pins !== undefined) return pins;
  const known = lock.size === 0 ? "it has none" : `it has ${[...lock.keys()].slice(0, 50).join(", ")}`;
  throw new InvalidInputError(
    `mcp("${server}"): the lock file ${name} has no server "${server}"; ${known}. Add it with: ${command}`,
  );
}

function parseLock(text: string, name: string): McpLock {
  if (text.length > LARGEST_LOCK) throw damaged(name, `it has more than ${LARGEST_LOCK} characters`);
  const value = jsonOf(text, name);
  const version = typeof value === "object" && value !== null ? Reflect.get(value, "version") : undefined;
  if (typeof version === "number" && version > LOCK_VERSION) {
    throw new InvalidInputError(
      `the lock file ${name} has version ${version}, and this version of troupe reads version ${LOCK_VERSION}; update troupe, or delete the file and write it anew with: ${pinCommand(name)}`,
    );
  }
  const parsed = mcpLockSchema.safeParse(value);
  if (!parsed.success) {
    const [issue] = parsed.error.issues;
    const path = (issue?.path ?? []).map((part) => (typeof part === "number" ? part : String(part)));
    throw damaged(name, `${renderPath(path)} is not as it was written`);
  }
  const servers = Object.entries(parsed.data.servers).map(([server, { era, tools }]): [string, PinnedServer] => [
    server,
    { era, tools: tools.map((tool) => checkedTool(tool, server, name)) },
  ]);
  return new Map(servers);
}

function jsonOf(text: string, name: string): Json {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    const isMerge = /^<{7} /m.test(text);
    throw damaged(name, isMerge ? "it has an unresolved merge conflict" : "it is not valid JSON");
  }
  const copied = toJson(value, { maxSize: LARGEST_LOCK });
  if (copied.ok) return copied.json;
  throw damaged(name, `${renderPath(copied.issue.path)}: ${copied.issue.message}`);
}

function checkedTool({ hash, description, ...tool }: StoredTool, server: string, name: string): PinnedTool {
  const text = Array.isArray(description) ? description.join("\n") : description;
  const pinned = { ...tool, ...(text === undefined ? {} : { description: text }) } as PinnedTool;
  if (hashOfTool(pinned) === hash) return pinned;
  const shown = JSON.stringify(tool.name.slice(0, 80));
  throw damaged(name, `the definition of ${shown} of the server "${server}" was edited: its hash is another`);
}

function damaged(name: string, why: string): InvalidInputError {
  return new InvalidInputError(
    `the lock file ${name} is damaged: ${why}; restore it from version control, or delete it and write it anew with: ${pinCommand(name)}`,
  );
}

/** The text of a lock file: sorted, and the same for the same definitions. */
export function lockText(lock: McpLock): string {
  const servers = [...lock]
    .toSorted(([one], [other]) => (one < other ? -1 : 1))
    .map(([server, { era, tools }]) => [server, { era, tools: tools.map(storedTool) }] as const);
  const content = { version: LOCK_VERSION, servers: Object.fromEntries(servers) };
  return `${visibleJson(JSON.stringify(content, null, 2))}\n`;
}

function storedTool(tool: PinnedTool): StoredTool {
  const { name, description, annotations, execution, inputSchema } = tool;
  const stored = {
    name,
    hash: hashOfTool(tool),
    description: description?.includes("\n") === true ? description.split("\n") : description,
    annotations,
    execution,
    inputSchema,
  };
  return stored as unknown as StoredTool;
}

/** Writes the lock file atomically; an existing file keeps its permissions. Returns whether its content has changed. */
export async function writeLock(file: string | URL, lock: McpLock): Promise<boolean> {
  const name = lockFileName(file);
  const text = lockText(lock);
  const known = await stat(file).catch(() => undefined);
  if (known !== undefined && readFileSync(file, "utf8") === text) return false;
  const partial = `${name}.${randomUUID().slice(0, 8)}.partial`;
  try {
    await writeFile(partial, text, { flag: "wx", mode: known === undefined ? 0o644 : known.mode & 0o777 });
    await rename(partial, name);
  } catch (error) {
    await rm(partial, { force: true });
    throw new InvalidInputError(describeFileError(name, error), { cause: error });
  }
  return true;
}
