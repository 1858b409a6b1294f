import { existsSync } from "node:fs";
import { join } from "node:path";
import { pathToFileURL } from "node:url";
import type { AgentTool } from "../../agents/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import type { Governance } from "./catalog.ts";
import type { TealFile } from "./agent-yaml.ts";

/** Names of the module next to an agent file whose named exports are its plugins. */
const moduleNames = ["custom_plugins.ts", "custom_plugins.mts", "custom_plugins.js", "custom_plugins.mjs"];

/** Maximum length of a tool's name, including its plugin's. */
const LONGEST_NAME = 64;

/** Plugins must not contain the tools that the runtime itself provides. */
type PluginTool = Exclude<AgentTool, { readonly kind: "internal" | "control" }>;
const kinds: readonly unknown[] = ["function", "client", "subagent"] satisfies readonly PluginTool["kind"][];

interface PluginDependencies {
  /** The folder of the agent file. */
  readonly folder: string;
  /** The module with the plugins, if an option names one. */
  readonly module: string | undefined;
  readonly catalog: ReadonlyMap<string, Governance>;
}

/**
 * The tools of the plugins in an agent file, with the names that the model uses: `plugin-function`. Tools for which the
 * catalog requires a person need an approval.
 * @throws InvalidInputError that names the plugin by its path in the file.
 */
export async function toolsOfPlugins(file: TealFile, dependencies: PluginDependencies): Promise<readonly AgentTool[]> {
  const names = file.agent.plugins ?? [];
  if (names.length === 0) return [];
  const path = dependencies.module ?? moduleBeside(dependencies.folder);
  if (path === undefined || !existsSync(path)) {
    const missing = dependencies.module ?? `${moduleNames[0]} or ${moduleNames[2]} next to this file`;
    throw file.problem(["spec", "agent", "plugins"], `needs ${missing}, which does not exist`);
  }
  const exported = await importModule(path);
  const tools = names.flatMap((plugin, index) => {
    const field = ["spec", "agent", "plugins", index];
    if (names.indexOf(plugin) !== index) throw file.problem(field, `names "${plugin}" a second time`);
    const given = Object.hasOwn(exported, plugin) ? exported[plugin] : undefined;
    const list: readonly unknown[] = Array.isArray(given) ? given : [given];
    if (list.length === 0 || !list.every(isTool)) {
      throw file.problem(field, `is "${plugin}": ${path} must export a list of tools under this name`);
    }
    return list.map((tool) => {
      const name = `${plugin}-${tool.name}`;
      if (name.length > LONGEST_NAME || !/^[A-Za-z0-9_-]+$/.test(name)) {
        throw file.problem(
          field,
          `makes a tool "${name}"; a name consists of 1 to ${LONGEST_NAME} letters, digits, "_" and "-"`,
        );
      }
      return governed({ ...tool, name }, dependencies.catalog.get(name));
    });
  });
  checkCatalog(names, tools, dependencies.catalog);
  return tools;
}

function moduleBeside(folder: string): string | undefined {
  return moduleNames.map((name) => join(folder, name)).find((path) => existsSync(path));
}

async function importModule(path: string): Promise<Readonly<Record<string, unknown>>> {
  try {
    return (await import(pathToFileURL(path).href)) as Readonly<Record<string, unknown>>;
  } catch (error) {
    const why = error instanceof Error ? error.message : String(error);
    throw new InvalidInputError(`${path} cannot be loaded: ${why}`, { cause: error });
  }
}

/** `defineAgent` checks the rest of a tool. */
function isTool(value: unknown): value is PluginTool {
  if (typeof value !== "object" || value === null) return false;
  const { name, kind } = value as Readonly<Record<string, unknown>>;
  return typeof name === "string" && kinds.includes(kind);
}

function governed(tool: PluginTool, rules: Governance | undefined): PluginTool {
  if (rules === undefined) return tool;
  if (rules.wantsCredentials) {
    throw new InvalidInputError(
      `${rules.place}.auth is not supported: read the credentials of "${tool.name}" from run.auth, and give the tool auth: "required"`,
    );
  }
  if (!rules.needsApproval) return tool;
  if (tool.kind !== "function") {
    throw new InvalidInputError(
      `${rules.place}.governance.requires_hitl: "${tool.name}" cannot require approval; only tools of defineTool can`,
    );
  }
  return { ...tool, needsApproval: true };
}

/** Checks the catalog's tools: with a misspelt entry, a call would run without its required approval. */
function checkCatalog(
  plugins: readonly string[],
  tools: readonly AgentTool[],
  catalog: ReadonlyMap<string, Governance>,
): void {
  for (const [name, { needsApproval, place }] of catalog) {
    const plugin = plugins.find((one) => name.startsWith(`${one}-`));
    if (!needsApproval || plugin === undefined || tools.some((tool) => tool.name === name)) continue;
    throw new InvalidInputError(
      `${place}.tool_id: the plugin "${plugin}" has no tool "${name}", which requires approval`,
    );
  }
}
