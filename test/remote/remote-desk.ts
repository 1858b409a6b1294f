import { type Agent, createRuntime, defineAgent, memoryStores, type Runtime, type Stores } from "troupe";
import { remoteAgent, type RemoteAgentOptions } from "troupe/a2a";
import { scriptedModel } from "troupe/testing";
import { onTestFinished } from "vitest";
import { servedDesk } from "../server/a2a/a2a-served.ts";
import { tokens } from "../server/served.ts";

/** The desk of the A2A tests behind a socket, and what it has done. */
export interface Desk {
  readonly url: string;
  readonly runtime: Runtime;
  readonly removed: readonly string[];
  /** Ids of its turns. */
  tasks(): Promise<readonly string[]>;
}

export async function openDesk(): Promise<Desk> {
  const { server, runtime, removed } = await servedDesk();
  const { url } = await server.listen();
  return {
    url: `${url}/a2a/desk`,
    runtime,
    removed,
    tasks: async () => (await runtime.turns()).map(({ turnId }) => turnId),
  };
}

export interface DeskCaller {
  readonly runtime: Runtime;
  readonly agent: Agent;
  readonly stores: Stores;
}

/** An agent that says these things to the remote agent "desk", one a step, and then ends. */
export async function deskCaller(
  { url }: { readonly url: string },
  {
    says,
    agentId = "caller",
    ...options
  }: { readonly says: readonly string[]; readonly agentId?: string } & Partial<RemoteAgentOptions>,
): Promise<DeskCaller> {
  const stores = memoryStores();
  const definition = defineAgent({
    name: "caller",
    model: scriptedModel(({ messages }) => {
      const input = says[messages.filter(({ role }) => role === "tool").length];
      return input === undefined ? "the end" : { toolCalls: [{ name: "desk", arguments: { input } }] };
    }),
    tools: [remoteAgent({ name: "desk", url, auth: tokens.ann, ...options })],
  });
  const runtime = await createRuntime({ agents: [definition], stores });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent("caller", { agentId });
  await agent.start();
  return { runtime, agent, stores };
}
