import type { AgentOptions } from "../agents/index.ts";
import { defineAgent } from "../agents/index.ts";
import type { Stores } from "../stores/index.ts";
import { createRuntime } from "./create-runtime.ts";
import type { Projections } from "./projection-stores.ts";
import type { Agent, AgentStartOptions } from "./types.ts";

export interface CreateAgentOptions extends Omit<AgentOptions, "name">, Omit<AgentStartOptions, "agentId" | "budget"> {
  /** The agent's id (row L2). Default: a random UUID. */
  readonly contextId?: string | undefined;
  /** Default `agent`. */
  readonly name?: string | undefined;
  readonly stores?: Stores | undefined;
  /** Stores of your own that are given copies, after the commit (row L11). */
  readonly projections?: Projections | undefined;
}

/** The short form: one agent with a runtime of its own. `dispose()` shuts both down. */
export async function createAgent(options: CreateAgentOptions): Promise<Agent & { dispose(): Promise<void> }> {
  const { contextId, name = "agent", stores, projections, autoSave, ...others } = options;
  const { sessionId, ownerId, metadata, ...definition } = others;
  const runtime = await createRuntime({ agents: [defineAgent({ ...definition, name })], stores, projections });
  const agent = await runtime.agent(name, { agentId: contextId, sessionId, ownerId, metadata, autoSave });
  return Object.assign(agent, { dispose: () => runtime.shutdown() });
}
