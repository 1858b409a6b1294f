import { createHash } from "node:crypto";
import { stableStringify, toJson } from "../base/index.ts";
import type { Redact } from "../tools/index.ts";
import type { Json } from "../state/index.ts";
import type { ListedTool } from "./listed-tool.ts";

/** The parts of a tool's definition that the model or the runtime uses. Absent parts were absent at the server. */
export interface PinnedTool extends ListedTool {
  readonly description?: string;
  readonly inputSchema?: Json;
  readonly annotations?: Json;
  readonly execution?: Json;
}

/** The parts besides the name, in the order of the lock file. */
export const pinnedParts = ["description", "annotations", "execution", "inputSchema"] as const;

/** Largest definition that is pinned, in characters and values. */
const LARGEST_DEFINITION = 500_000;

/** The definition of a listed tool without secrets; `undefined` if it cannot be in a lock file. */
export function pinnedToolOf(listed: ListedTool, redact: Redact): PinnedTool | undefined {
  const { name, description, annotations, execution, inputSchema } = listed;
  // Without its name the tool could not be called.
  if (redact(name.toWellFormed()) !== name) return undefined;
  const given = {
    name,
    description: typeof description === "string" ? description : undefined,
    annotations,
    execution,
    inputSchema,
  };
  const copied = toJson(given, { maxSize: LARGEST_DEFINITION });
  return copied.ok ? (redactedJson(copied.json, redact) as unknown as PinnedTool) : undefined;
}

/** The first definition of each name, sorted by name, and the names of those that cannot be pinned: too large, too deep, or a secret. */
export function pinnedToolsOf(
  listed: readonly ListedTool[],
  redact: Redact,
): { readonly tools: readonly PinnedTool[]; readonly unpinnable: readonly string[] } {
  const tools = new Map<string, PinnedTool>();
  const unpinnable = new Set<string>();
  for (const tool of listed) {
    if (tools.has(tool.name) || unpinnable.has(tool.name)) continue;
    const pinned = pinnedToolOf(tool, redact);
    if (pinned === undefined) unpinnable.add(tool.name);
    else tools.set(tool.name, pinned);
  }
  const sorted = [...tools.values()].toSorted((one, other) => (one.name < other.name ? -1 : 1));
  return { tools: sorted, unpinnable: [...unpinnable].map(redact) };
}

/** SHA-256 of the definition, independent of the order of its members. */
export function hashOfTool({ name, description, annotations, execution, inputSchema }: PinnedTool): string {
  const text = stableStringify({ name, description, annotations, execution, inputSchema });
  return `sha256:${createHash("sha256").update(text).digest("hex")}`;
}

/** A copy with sorted keys, well-formed texts, and without secrets. */
function redactedJson(json: Json, redact: Redact): Json {
  if (typeof json === "string") return redact(json.toWellFormed());
  if (typeof json !== "object" || json === null) return json;
  if (Array.isArray(json)) return json.map((member: Json) => redactedJson(member, redact));
  const members = Object.entries(json).map(([key, member]): [string, Json] => [
    redact(key.toWellFormed()),
    redactedJson(member, redact),
  ]);
  return Object.fromEntries(members.toSorted(([one], [other]) => (one < other ? -1 : 1)));
}
