import { type AgentDefinition, type AgentOptions, defineAgent, definitionDoor } from "../agents/index.ts";
import { anyRule, type Door, idRule, optionsOf } from "../base/index.ts";
import type { Stores } from "../stores/index.ts";
import { agentFields } from "./agent-doors.ts";
import { createRuntime } from "./create-runtime.ts";
import type { Projections } from "./projection-stores.ts";
import { definitionsRule, projectionsRule, storesRule } from "./runtime-doors.ts";
import type { Agent, AgentStartOptions } from "./types.ts";

export interface CreateAgentOptions extends Omit<AgentOptions, "name">, Omit<AgentStartOptions, "agentId" | "budget"> {
  /** The agent's id (row L2). Default: a random UUID. */
  readonly contextId?: string | undefined;
  /** Default `agent`. */
  readonly name?: string | undefined;
  /** Further definitions, for what code spawns: those of subagents among the tools are known without it. */
  readonly agents?: readonly AgentDefinition[] | undefined;
  readonly stores?: Stores | undefined;
  /** Stores of your own that are given copies, after the commit (row L11). */
  readonly projections?: Projections | undefined;
}

const { agents: _tools, store: _store, stores: _stores, agentId: _id, id: _name, ...instead } = definitionDoor.instead;

const createAgentDoor: Door<CreateAgentOptions> = {
  rules: {
    ...definitionDoor.rules,
    ...agentFields,
    contextId: idRule,
    name: anyRule,
    agents: definitionsRule,
    stores: storesRule,
    projections: projectionsRule,
  },
  needed: ["model"],
  instead: {
    ...instead,
    agentId: "contextId",
    id: "contextId",
    store: "stores",
    userId: "ownerId",
    role: "createRuntime()",
  },
};

/** The short form: one agent with a runtime of its own. `dispose()` shuts both down. */
export async function createAgent(given: CreateAgentOptions): Promise<Agent & { dispose(): Promise<void> }> {
  const options = optionsOf<CreateAgentOptions>(given, "createAgent()", createAgentDoor);
  const { contextId, name = "agent", agents = [], stores, projections, autoSave, ...others } = options;
  const { sessionId, ownerId, metadata, ...definition } = others;
  const own = defineAgent({ ...definition, name });
  const runtime = await createRuntime({ agents: [own, ...agents], stores, projections });
  try {
    const agent = await runtime.agent(name, { agentId: contextId, sessionId, ownerId, metadata, autoSave });
    return Object.assign(agent, { dispose: () => runtime.shutdown() });
  } catch (error) {
    await runtime.shutdown();
    throw error;
  }
}
