import { Role, type SendMessageRequest, type Task } from "@a2a-js/sdk";
import {
  type Client,
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
  RestTransportFactory,
} from "@a2a-js/sdk/client";
import {
  type AgentDefinition,
  askUser,
  createRuntime,
  defineAgent,
  defineTool,
  type Runtime,
  type RuntimeOptions,
  textOf,
  toolResult,
} from "troupe";
import { a2aSurface, type RuntimeServer } from "troupe/server";
import { scriptedModel } from "troupe/testing";
import { onTestFinished } from "vitest";
import { z } from "zod";
import { serve, type Served, tokens, type User } from "../served.ts";

export type Binding = "JSONRPC" | "HTTP+JSON";
export const bindings: readonly Binding[] = ["JSONRPC", "HTTP+JSON"];

/** The first bytes of a PDF: a binary file. */
export const scanned = Buffer.from([0x25, 0x50, 0x44, 0x46, 0, 0xff, 0xd8, 0x0a]);

/** An agent that removes files, asks for names, saves notes, scans pages, receives colours, and otherwise repeats its input. */
export function deskAgent(removed: string[] = []): AgentDefinition {
  const remove = defineTool({
    name: "remove",
    description: "Removes a file",
    parameters: z.object({ path: z.string() }),
    needsApproval: true,
    execute: ({ path }) => {
      removed.push(path);
      return `removed ${path}`;
    },
  });
  const save = defineTool({
    name: "save",
    description: "Saves a table and a note",
    parameters: z.object({}),
    execute: async (_, context) => {
      await context.saveArtifact({ name: "table.json", contentType: "application/json", content: '{"rows":2}' });
      await context.saveArtifact({ name: "note.md", contentType: "text/markdown", content: "# Note" });
      return "saved";
    },
  });
  const scan = defineTool({
    name: "scan",
    description: "Scans a page",
    parameters: z.object({}),
    execute: () =>
      toolResult({ content: [{ type: "file", data: scanned, mediaType: "application/pdf", name: "scan.pdf" }] }),
  });
  const model = scriptedModel(({ messages }) => {
    const last = messages.at(-1);
    const text = textOf(last?.content ?? "");
    if (last?.role === "tool") return { text: `so: ${text}` };
    if (text === "remove") return { toolCalls: [{ name: "remove", arguments: { path: "a.txt" } }] };
    if (text === "ask") return { toolCalls: [{ name: "ask_user", arguments: { question: "your name?" } }] };
    if (text === "scan") return { toolCalls: [{ name: "scan", arguments: {} }] };
    if (text === "save") return { toolCalls: [{ name: "save", arguments: {} }] };
    return { text: `${messages.filter(({ role }) => role === "user").length}: ${text}` };
  });
  return defineAgent({ name: "desk", model, tools: [remove, save, scan, askUser()] });
}

export interface A2aServedDesk extends Served {
  readonly runtime: Runtime;
  readonly removed: string[];
}

export async function servedDesk(options: Partial<RuntimeOptions> = {}): Promise<A2aServedDesk> {
  const removed: string[] = [];
  const definition = deskAgent(removed);
  const runtime = await createRuntime({ agents: [definition], ...options });
  onTestFinished(() => runtime.shutdown());
  const surface = await a2aSurface({ agents: [{ definition, description: "Keeps files" }] });
  return { ...serve(runtime, { surfaces: [surface] }), runtime, removed };
}

/** A fetch as a user, directly to the handler without a socket. */
export function fetchOf({ fetch }: Pick<RuntimeServer, "fetch">, as: User = "ann"): typeof globalThis.fetch {
  return async (input, init) => {
    const request = new Request(input, init);
    request.headers.set("authorization", `Bearer ${tokens[as]}`);
    return await fetch(request);
  };
}

interface ClientPlace {
  readonly binding?: Binding;
  readonly base?: string;
  /** Of the agent. */
  readonly name?: string;
}

/** The official client, created from the agent's card. */
export async function clientOf(
  fetchImpl: typeof globalThis.fetch,
  { binding = "JSONRPC", base = "http://127.0.0.1", name = "desk" }: ClientPlace = {},
): Promise<Client> {
  const factory = new ClientFactory({
    transports: [new JsonRpcTransportFactory({ fetchImpl }), new RestTransportFactory({ fetchImpl })],
    preferredTransports: [binding],
    cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
  });
  return await factory.createFromUrl(`${base}/a2a/${name}/`);
}

let count = 0;

/** A user's message as the client sends it. */
export function saying(
  text: string,
  { taskId = "", contextId = "", messageId, ...configuration }: Saying = {},
): SendMessageRequest {
  count += 1;
  return {
    tenant: "",
    metadata: undefined,
    configuration: {
      acceptedOutputModes: [],
      taskPushNotificationConfig: undefined,
      returnImmediately: false,
      ...configuration,
    },
    message: {
      messageId: messageId ?? `message-${count}`,
      contextId,
      taskId,
      role: Role.ROLE_USER,
      parts: [{ content: { $case: "text", value: text }, metadata: undefined, filename: "", mediaType: "" }],
      metadata: undefined,
      extensions: [],
      referenceTaskIds: [],
    },
  };
}

interface Saying {
  readonly taskId?: string;
  readonly contextId?: string;
  readonly messageId?: string;
  readonly historyLength?: number;
  readonly returnImmediately?: boolean;
}

/** Sends a message and returns the task. */
export async function sent(client: Client, request: SendMessageRequest): Promise<Task> {
  const result = await client.sendMessage(request);
  if ("messageId" in result) throw new Error("expected a task, got a message");
  return result;
}

/** The text of the answer. */
export function answerIn({ artifacts }: Task): string | undefined {
  const content = artifacts.find(({ artifactId }) => artifactId === "answer")?.parts[0]?.content;
  return content?.$case === "text" ? content.value : undefined;
}
