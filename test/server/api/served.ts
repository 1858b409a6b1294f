import {
  createRuntime,
  askUser,
  defineAgent,
  defineTool,
  subagent,
  type AgentDefinition,
  type Runtime,
  type RuntimeOptions,
} from "troupe";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";
import { onTestFinished } from "vitest";
import { apiSurface } from "../../../src/server/api/api-surface.ts";
import type { Identity } from "../../../src/server/core/identity.ts";
import { tokenAuth } from "../../../src/server/core/identity.ts";
import { type RuntimeServer, serveRuntime, type ServeOptions } from "troupe/server";
import { sseFrames } from "../../support/sse-frames.ts";

export const ada = "token-of-ada-0001";
export const bob = "token-of-bob-0001";
export const eve = "token-of-eve-0001";

export const identities: Readonly<Record<string, Identity>> = {
  [ada]: { userId: "ada", scopes: [] },
  [bob]: { userId: "bob", scopes: [] },
  [eve]: { userId: "ada", tenant: "elsewhere", scopes: [] },
};

/** An agent that follows its input: `save`, `remove`, `ask`, `delegate`, `chat`. */
export function clerk(): AgentDefinition {
  const say = scriptedModel(({ messages }) => {
    const last = messages.at(-1);
    if (last?.role === "tool") return "Done.";
    switch (last?.content) {
      case "save":
        return { toolCalls: [{ name: "save" }] };
      case "remove":
        return { toolCalls: [{ name: "remove", arguments: { path: "/home/ada" } }] };
      case "ask":
        return { toolCalls: [{ name: "ask_user", arguments: { question: "Which one?" } }] };
      case "delegate":
        return { toolCalls: [{ name: "reader", arguments: { input: "read" } }] };
      default:
        return { deltas: ["Parcel A ", "weighs ", "3 kg."] };
    }
  });
  const remove = defineTool({
    name: "remove",
    description: "Removes a folder.",
    parameters: z.object({ path: z.string() }),
    needsApproval: true,
    execute: ({ path }) => `removed ${path}`,
  });
  const save = defineTool({
    name: "save",
    description: "Saves a page.",
    parameters: z.object({}),
    execute: async (_, run) => {
      await run.saveArtifact({ name: "page.html", contentType: "text/html", content: "<script>alert(1)</script>" });
      return "saved";
    },
  });
  const reader = defineAgent({ name: "reader", model: scriptedModel(() => "Read.") });
  return defineAgent({
    name: "clerk",
    model: say,
    tools: [save, remove, askUser(), subagent(reader, { description: "Reads." })],
  });
}

export interface Served {
  readonly runtime: Runtime;
  readonly server: RuntimeServer;
  /** Sends a request with ada's token, or another's; `null`: without any. */
  readonly ask: (place: string, init?: AskOptions) => Promise<Response>;
}

export interface AskOptions {
  readonly token?: string | null;
  readonly body?: unknown;
  readonly headers?: Readonly<Record<string, string>>;
  readonly signal?: AbortSignal;
}

/** A server over its own runtime; both are closed after the test. */
export async function served(
  options: Partial<RuntimeOptions> = {},
  serving: Partial<ServeOptions> = {},
): Promise<Served> {
  const runtime = await createRuntime({ agents: [clerk()], ...options });
  const server = serveRuntime(runtime, {
    authenticate: tokenAuth({ tokens: identities }),
    surfaces: [apiSurface()],
    ...serving,
  });
  onTestFinished(async () => {
    await server.close();
    await runtime.shutdown();
  });
  return { runtime, server, ask: askOf(server) };
}

/** `ask("POST /api/agents", { body })`. */
export function askOf(server: Pick<RuntimeServer, "fetch">): Served["ask"] {
  return async (place, { token = ada, body, headers, signal } = {}) => {
    const [method = "", path = ""] = place.split(" ", 2);
    const request = new Request(`http://127.0.0.1${path}`, {
      method,
      headers: {
        ...(token === null ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { "content-type": "application/json" }),
        ...headers,
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      ...(signal ? { signal } : {}),
    });
    return await server.fetch(request);
  };
}

export interface Frame {
  readonly id: string | undefined;
  readonly event: string | undefined;
  readonly data: { readonly type: string; readonly cursor: string | null; readonly [key: string]: unknown };
}

/** The frames of a stream as they arrive. */
export async function* framesOf(response: Response): AsyncGenerator<Frame, void, undefined> {
  for await (const { id, event, data } of sseFrames(response)) {
    yield { id, event, data: JSON.parse(data) as Frame["data"] };
  }
}
