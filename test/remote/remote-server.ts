import {
  type Agent,
  type AgentDefinition,
  createRuntime,
  defineAgent,
  defineTool,
  memoryStores,
  type Runtime,
  type Stores,
  textOf,
} from "troupe";
import { remoteAgent, type RemoteAgentOptions } from "troupe/a2a";
import { a2aSurface } from "troupe/server";
import { type FakeClock, scriptedModel } from "troupe/testing";
import { onTestFinished, vi } from "vitest";
import { z } from "zod";
import { servedDesk } from "../server/a2a/a2a-served.ts";
import { serve, tokens } from "../server/served.ts";

/** The desk of the A2A tests behind a socket, and its recorded calls. */
export interface RemoteServer {
  readonly url: string;
  readonly runtime: Runtime;
  readonly removed: readonly string[];
  /** The ids of its turns. */
  tasks(): Promise<readonly string[]>;
}

export async function openRemoteServer(): Promise<RemoteServer> {
  const { server, runtime, removed } = await servedDesk();
  const { url } = await server.listen();
  return {
    url: `${url}/a2a/desk`,
    runtime,
    removed,
    tasks: () => tasksOf(runtime),
  };
}

async function tasksOf(runtime: Runtime): Promise<readonly string[]> {
  return (await runtime.turns()).map(({ turnId }) => turnId);
}

/** An agent that runs the tool "work" once, for every message. */
export function workerAgent(work: () => Promise<string>): AgentDefinition {
  const tool = defineTool({
    name: "work",
    description: "Works.",
    parameters: z.object({}),
    effect: "none",
    execute: async () => await work(),
  });
  const model = scriptedModel(({ messages }) => {
    const last = messages.at(-1);
    return last?.role === "tool" ? `so: ${textOf(last.content)}` : { toolCalls: [{ name: "work", arguments: {} }] };
  });
  return defineAgent({ name: "desk", model, tools: [tool] });
}

type Calling = {
  /** Its messages, one after the other; a list is sent in parallel. */
  readonly says: readonly (string | readonly string[])[];
  readonly maxSeconds?: number;
} & Partial<RemoteAgentOptions>;

/** An agent that sends these messages to the remote agent "desk", one per step, and then ends. */
export function callerAgent({ says, maxSeconds, ...options }: Calling): AgentDefinition {
  return defineAgent({
    name: "caller",
    model: scriptedModel(({ messages }) => {
      const said = messages.filter((message) => message.role === "assistant" && message.toolCalls).length;
      const inputs = [says[said] ?? []].flat();
      return inputs.length === 0
        ? "the end"
        : { toolCalls: inputs.map((input) => ({ name: "desk", arguments: { input } })) };
    }),
    tools: [remoteAgent({ name: "desk", auth: tokens.ann, ...options })],
    ...(maxSeconds === undefined ? {} : { budget: { maxSeconds } }),
  });
}

export interface DeskCaller {
  readonly runtime: Runtime;
  readonly agent: Agent;
  readonly stores: Stores;
}

/** The same agent, started in another runtime. */
export async function deskCaller(
  { url }: { readonly url: string },
  {
    agentId = "caller",
    clock,
    ...calling
  }: Omit<Calling, "url"> & { readonly agentId?: string; readonly clock?: FakeClock },
): Promise<DeskCaller> {
  const stores = memoryStores();
  const runtime = await createRuntime({
    agents: [callerAgent(calling.card === undefined ? { url, ...calling } : calling)],
    stores,
    ...(clock ? { clock } : {}),
  });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent("caller", { agentId });
  await agent.start();
  return { runtime, agent, stores };
}

/** A remote agent over HTTP that works until the test releases it. */
export async function openWorker(work: () => Promise<string>): Promise<RemoteServer> {
  const definition = workerAgent(work);
  const runtime = await createRuntime({ agents: [definition] });
  onTestFinished(() => runtime.shutdown());
  const { server } = serve(runtime, { surfaces: [await a2aSurface({ agents: [{ definition }] })] });
  const { url } = await server.listen();
  return { url: `${url}/a2a/desk`, runtime, removed: [], tasks: () => tasksOf(runtime) };
}

/** A call timeout, in milliseconds, that is never reached. */
export const longTime = 5_000_000;

/** Intercepts timers from now on; the returned function fires the timeout of a call with `timeoutMs: longTime`. */
export function watchTime(): () => void {
  const timers = vi.spyOn(globalThis, "setTimeout");
  onTestFinished(() => timers.mockRestore());
  return () => {
    const [due] = timers.mock.calls.find(([, ms = 0]) => ms <= longTime && ms > longTime / 2) ?? [];
    if (due === undefined) throw new Error("no call waits");
    due();
  };
}

/** Waits for a condition in another process or server. */
export const polling = { timeout: 30_000, interval: 20 };
