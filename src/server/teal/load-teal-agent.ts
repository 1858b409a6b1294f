import { readFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import { type AgentDefinition, type AgentOptions, type AgentTool, defineAgent } from "../../agents/index.ts";
import { type OptionsSchema, functionRule, nameRule, optionsOf, reading, recordRule } from "../../base/index.ts";
import { budgetRule } from "../../budget/index.ts";
import { InvalidInputError } from "../../errors/index.ts";
import { type LanguageModel, offlineModel, openaiModel } from "../../model/index.ts";
import type { McpServerOverride } from "../../mcp/index.ts";
import type { TealAgentSpec, TealMetadata } from "./agent-file-schema.ts";
import type { TealFile } from "./agent-yaml.ts";
import { readCatalog } from "./catalog.ts";
import { connectMcpServers } from "./mcp-servers.ts";
import { toolsOfPlugins } from "./plugins.ts";

/** Options of `loadTealAgent()`. */
export interface TealAgentOptions {
  /** The module whose named exports are the plugins. Default: `custom_plugins.ts` or `.js` next to the file. */
  readonly plugins?: string | undefined;
  /** The plugin catalog. Default: `catalog.json` next to the file, if it exists. */
  readonly catalog?: string | undefined;
  /**
   * Further options of the file's MCP servers, by their names: `auth`, `pin`, settings of tools. They replace those of the file. Default:
   * none.
   */
  readonly mcp?: Readonly<Record<string, McpServerOverride>> | undefined;
  /** Limits of each turn, which the format does not contain. Default: 10 steps. */
  readonly budget?: AgentOptions["budget"];
  /**
   * Creates the model for the name in the file. Default: `openaiModel` of that name, or `offlineModel()` for `offline`.
   */
  readonly model?: ((name: string, options: TealModelOptions) => LanguageModel) | undefined;
}

/** Options for the function `model` of `loadTealAgent()`. */
export interface TealModelOptions {
  /** The model's reasoning effort; `null` if its name does not contain `gpt-5`. */
  readonly reasoningEffort: "low" | "medium" | "high" | null;
}

/** An agent from a file with `apiVersion: tealagents/v1alpha1`. */
export interface TealAgent {
  /** Name in its URLs, and of its definition. */
  readonly name: string;
  /** Version in its URLs: `/MathAgent/0.1`. */
  readonly version: string;
  /** Its description in the file, or `null` without one. */
  readonly description: string | null;
  /** Description and skills for its card, or `null` if the file has none. */
  readonly metadata: TealMetadata | null;
  /** The definition for the runtime. */
  readonly definition: AgentDefinition;
  /** Ends the connections to its MCP servers; see `close` of `McpTools`. Does nothing for a file without any. */
  readonly close: () => Promise<void>;
}

/**
 * Loads an agent from a YAML file, and its plugins, which are code.
 * @throws InvalidInputError that names the file, the line and the path of the field that is invalid or unsupported.
 */
export async function loadTealAgent(file: string | URL, given?: TealAgentOptions): Promise<TealAgent> {
  const options = optionsOf<TealAgentOptions>(given, "loadTealAgent()", tealOptionsSchema);
  const path = reading("loadTealAgent(): file", () => resolve(file instanceof URL ? fileURLToPath(file) : file));
  // Imported lazily, because it imports the YAML parser, which other programs do not need.
  const { readTealFile } = await import("./agent-yaml.ts");
  const config = readTealFile(await readTextFile(path), path);
  const folder = dirname(path);
  const catalog = readCatalog(options.catalog ?? join(folder, "catalog.json"), {
    isNamed: options.catalog !== undefined,
  });
  const plugins = await toolsOfPlugins(config, { folder, module: resolved(options.plugins), catalog });
  const servers = await connectMcpServers(config, options.mcp ?? {});
  try {
    const definition = definitionOf(config, [...plugins, ...servers.tools], options);
    const { name, version, description, metadata } = config;
    return Object.freeze({ name, version, description, metadata, definition, close: servers.close });
  } catch (error) {
    await servers.close();
    throw error;
  }
}

function definitionOf(
  { name, agent }: TealFile,
  tools: readonly AgentTool[],
  options: TealAgentOptions,
): AgentDefinition {
  return defineAgent({
    name,
    model: modelOf(agent, options.model),
    instructions: agent.system_prompt,
    tools,
    temperature: agent.temperature ?? undefined,
    maxOutputTokens: agent.max_tokens ?? undefined,
    budget: options.budget,
  });
}
const tealOptionsSchema: OptionsSchema<TealAgentOptions> = {
  rules: {
    plugins: nameRule,
    catalog: nameRule,
    mcp: recordRule("an object of options by the names of MCP servers", (value, where) => {
      if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
      throw new InvalidInputError(`${where} is not an object of options`);
    }),
    budget: budgetRule,
    model: functionRule,
  },
  instead: { mcpServers: "mcp", tools: "plugins: the path of a module", limits: "budget" },
};

function resolved(path: string | undefined): string | undefined {
  return path === undefined ? undefined : resolve(path);
}

async function readTextFile(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error) {
    const isMissing = error instanceof Error && "code" in error && error.code === "ENOENT";
    const why = isMissing ? "there is no such file" : String(error);
    throw new InvalidInputError(`${path} cannot be read: ${why}`, { cause: error });
  }
}

function modelOf(spec: TealAgentSpec, make: TealAgentOptions["model"]): LanguageModel {
  const reasoningEffort = spec.model.includes("gpt-5") ? (spec.reasoning_effort ?? "low") : null;
  if (make) return make(spec.model, { reasoningEffort });
  if (spec.model === "offline") return offlineModel();
  return openaiModel(spec.model, reasoningEffort === null ? {} : { extraBody: { reasoning_effort: reasoningEffort } });
}
