import { deepFreeze, nearestNames } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { JsonObject, ModelTool } from "../state/index.ts";

/** What a registry needs to know of a tool, whatever its kind: functions, subagents, client tools. */
export interface RegisteredTool {
  readonly kind: string;
  readonly name: string;
  readonly description: string;
  readonly jsonSchema: JsonObject;
}

export interface ToolRegistry<Member extends RegisteredTool> {
  /** In the order of registration. */
  readonly tools: readonly Member[];
  get(name: string): Member | undefined;
  /** The tools as the model sees them; the same array each time. */
  definitions(): readonly ModelTool[];
  /** What to tell a model that named a tool which is not there. */
  unknownToolMessage(name: string): string;
}

/** Throws `InvalidInputError` when two tools have one name. */
export function createToolRegistry<Member extends RegisteredTool>(tools: readonly Member[]): ToolRegistry<Member> {
  const byName = new Map<string, Member>();
  for (const tool of tools) {
    const other = byName.get(tool.name);
    if (other !== undefined) throw sameName(tool.name, other.kind, tool.kind);
    byName.set(tool.name, tool);
  }
  const members = Object.freeze([...byName.values()]);
  let definitions: readonly ModelTool[] | undefined;
  const registry: ToolRegistry<Member> = {
    tools: members,
    get: (name) => byName.get(name),
    definitions() {
      definitions ??= deepFreeze(
        members.map(({ name, description, jsonSchema }) => ({ name, description, parameters: { ...jsonSchema } })),
      );
      return definitions;
    },
    unknownToolMessage(name) {
      const shown = name.length > 64 ? `${name.slice(0, 64)}…` : name;
      if (members.length === 0) return `There is no tool "${shown}": this agent has no tools. Answer without one.`;
      const closest = nearestNames(shown, [...byName.keys()]).slice(0, 3);
      return `There is no tool "${shown}". The closest names are: ${closest.map((one) => one.name).join(", ")}. Use one of the tools you were given.`;
    },
  };
  return Object.freeze(registry);
}

function sameName(name: string, one: string, other: string): InvalidInputError {
  const details = { tool: name };
  const owned = [one, other].find((kind) => kind === "internal" || kind === "control");
  if (one === other || owned === undefined) {
    const kinds = `(a ${one} and a ${other})`;
    return new InvalidInputError(`Two tools are named "${name}" ${kinds}. Give each tool of an agent its own name.`, {
      details,
    });
  }
  const matter = owned === "internal" ? "own history" : "subagents in the background";
  return new InvalidInputError(
    `A tool is named "${name}", which is the name of a tool that the runtime gives this agent for its ${matter}. Give yours another name.`,
    { details },
  );
}
