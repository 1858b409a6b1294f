import { existsSync } from "node:fs";
import * as nodeModule from "node:module";
import { extname, resolve } from "node:path";
import { pathToFileURL } from "node:url";
import type { AgentDefinition } from "../../agents/index.ts";
import { InvalidInputError, NotFoundError } from "../../errors/index.ts";

const endings = [".ts", ".mts", ".js", ".mjs"];

/**
 * The definitions that a file exports: `default`, `agent` or `agents`, in this order, the first one first. The file runs
 * as a program does. Throws `InvalidInputError` when there is no such file, or nothing of the kind in it.
 */
export async function loadAgentFile(
  path: string,
  directory: string,
): Promise<readonly [AgentDefinition, ...AgentDefinition[]]> {
  const file = resolve(directory, path);
  if (!existsSync(file)) throw new InvalidInputError(`there is no file ${path}; give the path of an agent file`);
  if (!endings.includes(extname(file))) {
    throw new InvalidInputError(`${path} is no agent file; it must end with ${endings.join(", ")}`);
  }
  findTroupe();
  const exported = await importFile(file, path);
  const found = definitionsIn(exported);
  const [first, ...others] = found;
  if (first !== undefined) return [first, ...others];
  throw new InvalidInputError(
    `${path} exports no agent; export one made by defineAgent, as default or as "agent", or several as "agents"`,
  );
}

/** The definitions with the named one first. Throws `NotFoundError` when there is none of that name. */
export function chosenFirst(
  agents: readonly [AgentDefinition, ...AgentDefinition[]],
  name: string | undefined,
  file: string,
): readonly [AgentDefinition, ...AgentDefinition[]] {
  if (name === undefined) return agents;
  const chosen = agents.find((agent) => agent.name === name);
  if (chosen !== undefined) return [chosen, ...agents.filter((agent) => agent !== chosen)];
  throw new NotFoundError(
    `${file} exports no agent "${name}"; it has ${agents.map((agent) => `"${agent.name}"`).join(", ")}`,
  );
}

async function importFile(file: string, path: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    return (await import(pathToFileURL(file).href)) as Readonly<Record<string, unknown>>;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new InvalidInputError(`${path} cannot be loaded: ${why}`, { cause: error });
  }
}

/** Pure part: the definitions among a module's exports, each once. */
export function definitionsIn(exported: Readonly<Record<string, unknown>>): AgentDefinition[] {
  const { default: main, agent, agents } = exported;
  const candidates = [main, agent, agents].flat(1);
  return [...new Set(candidates)].filter(isDefinition);
}

function isDefinition(value: unknown): value is AgentDefinition {
  if (typeof value !== "object" || value === null) return false;
  const { name, model, tools, ref } = value as Partial<Record<keyof AgentDefinition, unknown>>;
  return typeof name === "string" && typeof ref === "object" && typeof model === "object" && typeof tools === "object";
}

let isFound = false;

/**
 * Lets agent files write `import "troupe"` wherever they lie: in a project of its own that package counts, elsewhere
 * this one; and in a clone, where nothing is built, it means the sources.
 */
function findTroupe(): void {
  // Absent before Node 22.15; agent files then need the package installed beside them.
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
