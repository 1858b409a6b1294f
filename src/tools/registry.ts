import { deepFreeze, nearestNames } from "../base/index.ts";
import { InvalidInputError } from "../errors/index.ts";
import type { JsonObject, ModelTool } from "../state/index.ts";

/** The fields that every kind of tool has: functions, subagents, client tools. */
export interface RegisteredTool {
  /** The kind of the tool, for instance `function`. */
  readonly kind: string;
  /** Its name for the model. */
  readonly name: string;
  /** What it does, for the model. */
  readonly description: string;
  /** JSON Schema of its arguments. */
  readonly jsonSchema: JsonObject;
  /** The model does not see it in its prompt. Default: it does. */
  readonly deferred?: true;
}

export interface ToolRegistry<Member extends RegisteredTool> {
  /** In the order of registration, without those in `onDemand`. */
  readonly tools: readonly Member[];
  /** Members that are shown to the model only when they have something to do. */
  readonly onDemand: readonly Member[];
  get(name: string): Member | undefined;
  /** Whether the tool of that name is shown to the model only when it has something to do. */
  isOnDemand(name: string): boolean;
  /** The tools for the model, including those on demand at the end if requested; always the same array. */
  definitions(options?: { readonly onDemand: boolean }): readonly ModelTool[];
  /** The message for a model that called an unknown tool. */
  unknownToolMessage(name: string): string;
}

/**
 * Throws `InvalidInputError` if two tools have the same name.
 * @param onDemand Tools that are shown to the model only when they have something to do; no other tool may have their names.
 */
export function createToolRegistry<Member extends RegisteredTool>(
  tools: readonly Member[],
  onDemand: readonly Member[] = [],
): ToolRegistry<Member> {
  const byName = new Map<string, Member>();
  for (const tool of [...tools, ...onDemand]) {
    const other = byName.get(tool.name);
    if (other !== undefined) throw sameName(tool.name, other.kind, tool.kind);
    byName.set(tool.name, tool);
  }
  const members = Object.freeze([...tools]);
  const usual = lazily(() => deepFreeze(members.filter(isShown).map(modelToolOf)));
  const all = lazily(() => deepFreeze([...usual(), ...onDemand.map(modelToolOf)]));
  const registry: ToolRegistry<Member> = {
    tools: members,
    onDemand: Object.freeze([...onDemand]),
    get: (name) => byName.get(name),
    isOnDemand: (name) => onDemand.some((tool) => tool.name === name),
    definitions: (options) => (options?.onDemand === true ? all() : usual()),
    unknownToolMessage: (name) => unknownToolMessage(name, members),
  };
  return Object.freeze(registry);
}

/** A registry with the given tools after those of `base`. If a name exists in both, the tool of `base` is kept. */
export function withTools<Member extends RegisteredTool>(
  base: ToolRegistry<Member>,
  tools: readonly Member[],
): ToolRegistry<Member> {
  const added = createToolRegistry(tools.filter(({ name }) => base.get(name) === undefined));
  const members = Object.freeze([...base.tools, ...added.tools]);
  const usual = lazily(() => Object.freeze([...base.definitions(), ...added.definitions()]));
  const all = lazily(() => Object.freeze([...base.definitions({ onDemand: true }), ...added.definitions()]));
  return Object.freeze({
    tools: members,
    onDemand: base.onDemand,
    get: (name: string) => base.get(name) ?? added.get(name),
    isOnDemand: (name: string) => base.isOnDemand(name),
    definitions: (options?: { readonly onDemand: boolean }) => (options?.onDemand === true ? all() : usual()),
    unknownToolMessage: (name: string) => unknownToolMessage(name, members),
  });
}

function unknownToolMessage(name: string, members: readonly RegisteredTool[]): string {
  const shown = name.length > 64 ? `${name.slice(0, 64)}…` : name;
  if (members.length === 0) return `There is no tool "${shown}": this agent has no tools. Answer without one.`;
  const closest = nearestNames(
    shown,
    members.filter(isShown).map((member) => member.name),
  ).slice(0, 3);
  return `There is no tool "${shown}". The closest names are: ${closest.map((one) => one.name).join(", ")}. Use one of the tools you were given.`;
}

function isShown({ deferred }: RegisteredTool): boolean {
  return deferred !== true;
}

function modelToolOf({ name, description, jsonSchema }: RegisteredTool): ModelTool {
  return { name, description, parameters: { ...jsonSchema } };
}

function lazily<Value>(make: () => Value): () => Value {
  let made: { readonly value: Value } | undefined;
  return () => (made ??= { value: make() }).value;
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
  const matter = owned === "internal" ? "own context" : "subagents in the background";
  return new InvalidInputError(
    `A tool is named "${name}", which is the name of a tool that the runtime gives this agent for its ${matter}. Give yours another name.`,
    { details },
  );
}
