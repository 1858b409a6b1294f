import {
  type AgentDefinition,
  type AgentOptions,
  defineAgent,
  definitionOptions,
  type OutputOf,
} from "../agents/index.ts";
import { anyRule, type OptionsSchema, idRule, optionsIn, optionsOf } from "../base/index.ts";
import type { ValueSchema } from "../tools/index.ts";
import { createRuntime } from "./create-runtime.ts";
import { agentFields } from "./api/agent-options.ts";
import type { Agent, AgentStartOptions } from "./api/agent-types.ts";
import { definitionsRule, insteadOfRole, runtimeSettingsRules } from "./api/runtime-options.ts";
import type { Runtime, RuntimeSettings } from "./api/runtime-types.ts";

/**
 * Options of `createAgent()`: those of `defineAgent()`, of `runtime.agent()`, and of `createRuntime()` except `role` and `work`.
 * `budget` limits each turn, as in a definition.
 */
export interface CreateAgentOptions<Schema extends ValueSchema = ValueSchema>
  extends Omit<AgentOptions<Schema>, "name">,
    Omit<AgentStartOptions, "budget">,
    RuntimeSettings {
  /** Letters, digits, `_`, `-` and `.`; 1 to 64 characters. Default `agent`. */
  readonly name?: string | undefined;
  /** Further definitions that code spawns; subagents among the tools are known without it. Default: none. */
  readonly agents?: readonly AgentDefinition[] | undefined;
}

const {
  agents: _tools,
  store: _store,
  stores: _stores,
  agentId: _id,
  id: _name,
  ...instead
} = definitionOptions.instead;

const startRules = { ...agentFields, agentId: idRule };

const createAgentOptionsSchema: OptionsSchema<CreateAgentOptions> = {
  rules: { ...definitionOptions.rules, ...startRules, ...runtimeSettingsRules, name: anyRule, agents: definitionsRule },
  needed: ["model"],
  instead: { ...instead, ...insteadOfRole, contextId: "agentId", id: "agentId", store: "stores", userId: "ownerId" },
};

/**
 * The short form: one agent in a private runtime, which must be shut down when the agent is no longer needed. Rejects with
 * `InvalidInputError` for invalid options, and with errors of the stores.
 */
export async function createAgent<const Schema extends ValueSchema = ValueSchema>(
  given: CreateAgentOptions<Schema>,
): Promise<Agent<OutputOf<Schema>> & { readonly runtime: Runtime }> {
  const options = optionsOf<CreateAgentOptions<Schema>>(given, "createAgent()", createAgentOptionsSchema);
  const { name = "agent", agents = [] } = options;
  const own = defineAgent({ ...optionsIn(options, definitionOptions.rules), name });
  const settings = optionsIn(options, runtimeSettingsRules);
  const runtime = await createRuntime({ recovers: "own", ...settings, agents: [own, ...agents] });
  try {
    const agent = await runtime.agent(own, optionsIn(options, startRules));
    return Object.assign(agent, { runtime });
  } catch (error) {
    await runtime.shutdown();
    throw error;
  }
}
