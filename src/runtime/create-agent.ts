import { type AgentDefinition, type AgentOptions, defineAgent, definitionDoor } from "../agents/index.ts";
import { anyRule, type Door, idRule, optionsOf } from "../base/index.ts";
import type { Stores } from "../stores/index.ts";
import { agentFields } from "./doors/agent-doors.ts";
import { createRuntime } from "./create-runtime.ts";
import type { Projections } from "./doors/projection-stores.ts";
import { definitionsRule, projectionsRule, storesRule } from "./doors/runtime-doors.ts";
import type { Runtime } from "./doors/runtime-types.ts";
import type { Agent, AgentStartOptions } from "./doors/agent-types.ts";

export interface CreateAgentOptions extends Omit<AgentOptions, "name">, Omit<AgentStartOptions, "budget"> {
  /** Default `agent`. */
  readonly name?: string | undefined;
  /** Further definitions that code spawns; definitions of subagents among the tools are known without it. */
  readonly agents?: readonly AgentDefinition[] | undefined;
  readonly stores?: Stores | undefined;
  /** Stores of your own that get copies after the commit (row L11). */
  readonly projections?: Projections | undefined;
}

const { agents: _tools, store: _store, stores: _stores, agentId: _id, id: _name, ...instead } = definitionDoor.instead;

const createAgentDoor: Door<CreateAgentOptions> = {
  rules: {
    ...definitionDoor.rules,
    ...agentFields,
    agentId: idRule,
    name: anyRule,
    agents: definitionsRule,
    stores: storesRule,
    projections: projectionsRule,
  },
  needed: ["model"],
  instead: {
    ...instead,
    contextId: "agentId",
    id: "agentId",
    store: "stores",
    userId: "ownerId",
    role: "createRuntime()",
  },
};

/** The short form: one agent in a private runtime, which must be shut down when the agent is not needed any more. */
export async function createAgent(given: CreateAgentOptions): Promise<Agent & { readonly runtime: Runtime }> {
  const options = optionsOf<CreateAgentOptions>(given, "createAgent()", createAgentDoor);
  const { agentId, name = "agent", agents = [], stores, projections, autoSave, ...others } = options;
  const { sessionId, ownerId, metadata, messages, ...definition } = others;
  const own = defineAgent({ ...definition, name });
  const runtime = await createRuntime({ agents: [own, ...agents], stores, projections });
  try {
    const agent = await runtime.agent(name, { agentId, sessionId, ownerId, metadata, autoSave, messages });
    return Object.assign(agent, { runtime });
  } catch (error) {
    await runtime.shutdown();
    throw error;
  }
}
