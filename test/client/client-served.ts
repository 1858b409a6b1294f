import { askUser, createRuntime, defineAgent, defineTool, type Runtime, type RuntimeOptions, textOf } from "troupe";
import { type ClientOptions, createClient, type TroupeClient } from "troupe/client";
import { scriptedModel } from "troupe/testing";
import { onTestFinished } from "vitest";
import { z } from "zod";
import { serve, type Served, tokens } from "../server/served.ts";
import { apiSurface } from "troupe/server";

export interface ClientServed extends Served {
  readonly runtime: Runtime;
  /** Requests that reached the server: `POST /api/agents`, with their idempotency keys. */
  readonly sent: { readonly what: string; readonly key: string | null }[];
  readonly client: TroupeClient;
  /** Another client of the same server. */
  readonly clientWith: (options: Partial<ClientOptions>) => TroupeClient;
  readonly fetch: typeof fetch;
}

/** A server in this process, without sockets. Its agent follows its input: `remove`, `ask`, `visit`, `locate`; otherwise it repeats it. */
export async function clientServed(options: Partial<RuntimeOptions> = {}): Promise<ClientServed> {
  const remove = defineTool({
    name: "remove",
    description: "Removes a folder.",
    parameters: z.object({ path: z.string() }),
    needsApproval: true,
    execute: ({ path }) => `removed ${path}`,
  });
  const visit = defineTool({
    name: "visit",
    description: "Needs a visit to a page.",
    parameters: z.object({}),
    execute: (_input, run) =>
      run.answer === null
        ? run.ask({ kind: "auth", prompt: "Log in.", arguments: { url: "https://login.example.com/" } })
        : `it was ${run.answer.verdict}`,
  });
  const desk = defineAgent({
    name: "desk",
    clientTools: true,
    tools: [remove, askUser(), visit],
    model: scriptedModel(({ messages }) => {
      const last = messages.at(-1);
      const text = textOf(last?.content ?? "");
      if (last?.role === "tool") return { deltas: ["So: ", text] };
      if (text === "remove") return { toolCalls: [{ name: "remove", arguments: { path: "/tmp" } }] };
      if (text === "ask") return { toolCalls: [{ name: "ask_user", arguments: { question: "Which?" } }] };
      if (text === "visit") return { toolCalls: [{ name: "visit", arguments: {} }] };
      if (text === "locate") return { toolCalls: [{ name: "locate", arguments: {} }] };
      return { deltas: ["You said ", text] };
    }),
  });
  const runtime = await createRuntime({ agents: [desk], streaming: "always", ...options });
  onTestFinished(() => runtime.shutdown());
  const served = serve(runtime, { surfaces: [apiSurface()] });
  const sent: { readonly what: string; readonly key: string | null }[] = [];
  const send: typeof fetch = async (input, init) => {
    const request = new Request(input, init);
    sent.push({
      what: `${request.method} ${new URL(request.url).pathname}`,
      key: request.headers.get("idempotency-key"),
    });
    return await served.server.fetch(request);
  };
  const clientWith = (more: Partial<ClientOptions>): TroupeClient =>
    createClient({
      url: "http://127.0.0.1",
      headers: () => ({ authorization: `Bearer ${tokens.ann}` }),
      fetch: send,
      ...more,
    });
  return { ...served, runtime, sent, client: clientWith({}), clientWith, fetch: send };
}
