import type { AgentOptions } from "../agents/index.ts";
import { defineAgent } from "../agents/index.ts";
import type { Stores } from "../stores/index.ts";
import { createRuntime } from "./create-runtime.ts";
import type { Projections } from "./projection-stores.ts";
import type { Agent, AgentStartOptions, Runtime } from "./types.ts";

export interface CreateAgentOptions extends Omit<AgentOptions, "name">, Omit<AgentStartOptions, "budget"> {
  /** Default `agent`. */
  readonly name?: string | undefined;
  readonly stores?: Stores | undefined;
  /** Stores of your own that are given copies, after the commit (row L11). */
  readonly projections?: Projections | undefined;
}

/** The short form: one agent, and the runtime of its own that it lives in: shut that down when the agent is not needed. */
export async function createAgent(options: CreateAgentOptions): Promise<Agent & { readonly runtime: Runtime }> {
  const { agentId, name = "agent", stores, projections, autoSave, ...others } = options;
  const { sessionId, ownerId, metadata, ...definition } = others;
  const runtime = await createRuntime({ agents: [defineAgent({ ...definition, name })], stores, projections });
  try {
    const agent = await runtime.agent(name, { agentId, sessionId, ownerId, metadata, autoSave });
    return Object.assign(agent, { runtime });
  } catch (error) {
    await runtime.shutdown();
    throw error;
  }
}
