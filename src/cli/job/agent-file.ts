import { existsSync } from "node:fs";
import * as nodeModule from "node:module";
import { extname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import { type AgentDefinition, collectDefinitions } from "../../agents/index.ts";
import { InvalidInputError, NotFoundError } from "../../errors/index.ts";
import type { RuntimeOptions } from "../../runtime/index.ts";
import type { TealAgent, TealAgentOptions } from "../../server/index.ts";
import type { AgentRecord } from "../../state/index.ts";

const endings = [".ts", ".mts", ".js", ".mjs"];
const yamlEndings = [".yaml", ".yml"];
/** Endings of the files that `loadAgentFile` accepts. */
export const agentFileEndings: readonly string[] = [...endings, ...yamlEndings];

type Definitions = readonly [AgentDefinition, ...AgentDefinition[]];

/** The exports of an agent file that the commands use. */
export interface AgentFile {
  /** `default`, `agent` and `agents`, in this order, each definition once. */
  readonly agents: Definitions;
  /** Definitions that may run without a name: see `rootsIn`. */
  readonly roots: Definitions;
  /** `mayDecide`: the rule on who may decide the requests of these agents. */
  readonly mayDecide: RuntimeOptions["mayDecide"];
  /** Set for a YAML file. */
  readonly teal?: TealAgent;
}

/**
 * Loads an agent file, which runs its code: a module, or an agent's YAML file with its plugins. Throws
 * `InvalidInputError` if the file does not exist, has no definition, or its `mayDecide` is not a function.
 */
export async function loadAgentFile(
  path: string,
  directory: string,
  places: Pick<TealAgentOptions, "plugins" | "catalog"> = {},
): Promise<AgentFile> {
  const file = resolve(directory, path);
  const ending = extname(file);
  if (!existsSync(file)) throw new InvalidInputError(`there is no file ${path}; give the path of an agent file`);
  if (!agentFileEndings.includes(ending)) {
    throw new InvalidInputError(
      `${path} is not an agent file; its extension must be one of ${agentFileEndings.join(", ")}`,
    );
  }
  findTroupe();
  if (yamlEndings.includes(ending)) {
    const { loadTealAgent } = await import("../../server/index.ts");
    const teal = await loadTealAgent(file, places);
    const agents: Definitions = [teal.definition];
    return { agents, roots: agents, mayDecide: undefined, teal };
  }
  const exported = await importFile(file, path);
  const [first, ...others] = definitionsIn(exported);
  if (first !== undefined) {
    const agents: Definitions = [first, ...others];
    return { agents, roots: rootsIn(exported) ?? agents, mayDecide: ruleIn(exported, path) };
  }
  throw new InvalidInputError(
    `${path} exports no agent; export the result of defineAgent as default or as "agent", or several as "agents"`,
  );
}

function ruleIn({ mayDecide }: Readonly<Record<string, unknown>>, path: string): AgentFile["mayDecide"] {
  if (mayDecide === undefined || typeof mayDecide === "function") return mayDecide as AgentFile["mayDecide"];
  throw new InvalidInputError(
    `${path} exports a mayDecide that is not a function; it must be ({ request, by, verdict }) => boolean`,
  );
}

/**
 * The definitions with the chosen one first: the named one, the resumed agent's, or the only root. Throws
 * `NotFoundError` for an unknown name, `InvalidInputError` if a name is required.
 */
export function chosenFirst(
  { agents, roots }: AgentFile,
  file: string,
  { name, known }: { readonly name: string | undefined; readonly known?: AgentRecord | undefined },
): Definitions {
  const wanted = agents.find((agent) => agent.name === (name ?? known?.definition.name));
  if (name !== undefined && wanted === undefined) {
    throw new NotFoundError(`${file} exports no agent "${name}"; it has ${namesOf(agents)}`);
  }
  const [first, ...others] = wanted === undefined ? roots : [wanted];
  if (others.length > 0) {
    throw new InvalidInputError(`${file} exports several agents, ${namesOf(agents)}; name one of them with --agent`);
  }
  return [first, ...agents.filter((agent) => agent !== first)];
}

function namesOf(agents: readonly AgentDefinition[]): string {
  return agents.map(({ name }) => `"${name}"`).join(", ");
}

async function importFile(file: string, path: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    return (await import(pathToFileURL(file).href)) as Readonly<Record<string, unknown>>;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    const hint = typeScriptHint(error, process.version);
    throw new InvalidInputError(`${path} cannot be loaded: ${why}${hint}`, { cause: error });
  }
}

/** The hint for a Node version that cannot run TypeScript (before 22.18); empty for other errors. */
export function typeScriptHint(error: unknown, version: string): string {
  const isUnknownEnding = error instanceof Error && "code" in error && error.code === "ERR_UNKNOWN_FILE_EXTENSION";
  if (!isUnknownEnding || !/"\.m?ts"/.test(error.message)) return "";
  return `. Node ${version.slice(1)} runs TypeScript only with a flag: set NODE_OPTIONS=--experimental-strip-types, or use Node 24`;
}

/** The definitions among a module's exports, without duplicates. */
export function definitionsIn(exported: Readonly<Record<string, unknown>>): AgentDefinition[] {
  const { default: main, agent, agents } = exported;
  const candidates = [main, agent, agents].flat(1);
  return [...new Set(candidates)].filter(isDefinition);
}

/**
 * The definitions that may run without a name: the one exported as `default`, else as `agent`, else those of `agents`
 * that are not subagents of another. `undefined` if each is a subagent of another.
 */
function rootsIn({ default: main, agent, agents }: Readonly<Record<string, unknown>>): Definitions | undefined {
  const named = [main, agent].find(isDefinition);
  if (named !== undefined) return [named];
  const listed = definitionsIn({ default: main, agents });
  const isBelow = (one: AgentDefinition): boolean =>
    listed.some((other) => other !== one && collectDefinitions([other]).get(one.name) === one);
  const [first, ...others] = listed.filter((one) => !isBelow(one));
  return first === undefined ? undefined : [first, ...others];
}

function isDefinition(value: unknown): value is AgentDefinition {
  if (typeof value !== "object" || value === null) return false;
  const { name, model, tools, ref } = value as Partial<Record<keyof AgentDefinition, unknown>>;
  return typeof name === "string" && typeof ref === "object" && typeof model === "object" && typeof tools === "object";
}

let isFound = false;

/**
 * Resolves `import "troupe"` in agent files anywhere: to their project's package if it has one, else to this package;
 * in a clone without a build, to the sources.
 */
function findTroupe(): void {
  // Missing before Node 22.15; agent files then need the package in their own project.
  if (isFound || !("registerHooks" in nodeModule)) return;
  isFound = true;
  const isSource = import.meta.url.endsWith(".ts");
  nodeModule.registerHooks({
    resolve(specifier, context, nextResolve) {
      if (specifier !== "troupe" && !specifier.startsWith("troupe/")) return nextResolve(specifier, context);
      const ours = {
        ...context,
        conditions: [...context.conditions, ...(isSource ? ["troupe-source"] : [])],
        parentURL: import.meta.url,
      };
      if (isSource) return nextResolve(specifier, ours);
      try {
        return nextResolve(specifier, context);
      } catch {
        return nextResolve(specifier, ours);
      }
    },
  });
}
