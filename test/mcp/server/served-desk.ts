import {
  Client,
  StreamableHTTPClientTransport,
  type ClientOptions,
  type ElicitResult,
} from "@modelcontextprotocol/client";
import {
  type AgentDefinition,
  askUser,
  createRuntime,
  defineAgent,
  defineTool,
  type Runtime,
  type RuntimeOptions,
  textOf,
} from "troupe";
import { type McpServing, serveMcp, type ServeMcpOptions } from "troupe/mcp/server";
import { tokenAuth } from "troupe/server";
import { scriptedModel } from "troupe/testing";
import { onTestFinished } from "vitest";
import { z } from "zod";
import { identities, tokens, type User } from "../../server/served.ts";

export type Era = "legacy" | "modern";
export const eras: readonly Era[] = ["legacy", "modern"];

/** An agent that removes files after an approval, asks for names, waits, and otherwise repeats its input. */
export function deskAgent(
  removed: (path: string) => void = () => undefined,
  waits: Promise<unknown> = never,
): AgentDefinition {
  const remove = defineTool({
    name: "remove",
    description: "Removes a file",
    parameters: z.object({ path: z.string() }),
    needsApproval: true,
    execute: ({ path }) => {
      removed(path);
      return `removed ${path}`;
    },
  });
  const wait = defineTool({
    name: "wait",
    description: "Waits for a long time",
    parameters: z.object({}),
    execute: async (_, { signal }) => {
      const { promise, resolve } = Promise.withResolvers<void>();
      signal.addEventListener("abort", () => resolve());
      await Promise.race([waits, promise]);
      return "waited";
    },
  });
  const model = scriptedModel(({ messages }) => {
    const last = messages.at(-1);
    const text = textOf(last?.content ?? "");
    if (last?.role === "tool") return { text: `so: ${text}` };
    if (text === "remove") return { toolCalls: [{ name: "remove", arguments: { path: "a.txt" } }] };
    if (text === "remove two") {
      return { toolCalls: ["a.txt", "b.txt"].map((path) => ({ name: "remove", arguments: { path } })) };
    }
    if (text === "ask") return { toolCalls: [{ name: "ask_user", arguments: { question: "your name?" } }] };
    if (text === "wait") return { toolCalls: [{ name: "wait", arguments: {} }] };
    if (text === "fail") throw new Error("connect ECONNREFUSED 10.0.0.7:6379");
    return { text: `${messages.filter(({ role }) => role === "user").length}: ${text}` };
  });
  return defineAgent({ name: "desk", model, tools: [remove, wait, askUser()] });
}

const never = new Promise<never>(() => undefined);

/** Answers in JSON; its schema refers to itself. */
export function tableAgent(): AgentDefinition {
  const node: z.ZodType = z.object({
    name: z.string(),
    get children() {
      return z.array(node);
    },
  });
  return defineAgent({
    name: "table",
    model: scriptedModel(() => ({ text: '{"name":"root","children":[{"name":"leaf","children":[]}]}' })),
    output: node,
  });
}

export interface ServedMcp {
  readonly runtime: Runtime;
  readonly serving: McpServing;
  readonly removed: string[];
  readonly url: string;
}

/** A runtime and a server over HTTP for it. */
export async function servedMcp(
  options: Partial<RuntimeOptions> = {},
  serve: Partial<ServeMcpOptions> = {},
): Promise<ServedMcp> {
  const removed: string[] = [];
  const runtime = await createRuntime({
    agents: [deskAgent((path) => void removed.push(path)), tableAgent()],
    ...options,
  });
  onTestFinished(() => runtime.shutdown());
  const serving = await serveMcp(runtime, { authenticate: tokenAuth({ tokens: identities }), ...serve });
  onTestFinished(() => serving.close());
  const { url } = await serving.listen();
  return { runtime, serving, removed, url };
}

export type Answering = (form: { readonly message: string }) => ElicitResult | Promise<ElicitResult>;

interface ClientPlace {
  readonly era: Era;
  readonly as?: User;
  /** Answers the server's questions. Default: the client cannot be asked. */
  readonly answers?: Answering;
  readonly options?: ClientOptions;
}

/** An official client without a connection. */
export function clientOf({ era, answers, options }: ClientPlace): Client {
  const client = new Client(
    { name: "test", version: "1.0.0" },
    {
      versionNegotiation: { mode: era === "modern" ? { pin: "2026-07-28" } : "legacy" },
      capabilities: answers === undefined ? {} : { elicitation: { form: {} } },
      ...options,
    },
  );
  if (answers !== undefined)
    client.setRequestHandler("elicitation/create", async ({ params }) => await answers(params));
  onTestFinished(() => client.close());
  return client;
}

/** A connected client over HTTP. */
export async function connectedClient(url: string, place: ClientPlace): Promise<Client> {
  const client = clientOf(place);
  const headers = { authorization: `Bearer ${tokens[place.as ?? "ann"]}` };
  await client.connect(new StreamableHTTPClientTransport(new URL(`${url}/mcp`), { requestInit: { headers } }));
  return client;
}

interface TextResult {
  readonly content: readonly { readonly type: string; readonly text?: string }[];
}

export function textIn(result: object): string {
  return ((result as TextResult).content ?? []).map(({ text }) => text ?? "").join("\n");
}

export interface Structured {
  readonly status: string;
  readonly turnId: string;
  readonly conversation: string;
  readonly text: string;
  readonly output?: unknown;
}

export function structuredIn(result: object): Structured {
  return (result as { structuredContent: Structured }).structuredContent;
}
