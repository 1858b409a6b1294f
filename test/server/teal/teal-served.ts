import { type AgentOptions, askUser, defineAgent, defineTool, type Runtime, type RuntimeOptions } from "troupe";
import type { ServeOptions } from "troupe/server";
import { type ModelScript, scriptedModel } from "troupe/testing";
import { expect } from "vitest";
import { z } from "zod";
import { tealSurface } from "../../../src/server/teal/teal-surface.ts";
import { type Asked, routeAt, runtimeOf, serve, type Served, surfaceOf } from "../served.ts";

export const address = "/MathAgent/0.1";

export interface Teal extends Served {
  readonly runtime: Runtime;
  /** The number of runs of the dangerous tool with these arguments. */
  readonly runs: readonly object[];
  /** Posts a body below the agent's URL; returns the status and the JSON of the answer. */
  post(this: void, path: string, body?: unknown, asked?: Asked): Promise<Posted>;
}

/** The fields of an answer or an event that tests read. */
export interface TealJson {
  readonly session_id: string;
  readonly task_id: string;
  readonly request_id: string;
  readonly status?: string;
  readonly detail?: unknown;
  readonly output_partial?: string;
  readonly source?: string;
  readonly approval_url?: string;
  readonly rejection_url?: string;
  readonly tool_calls?: readonly { readonly id: string }[];
  readonly content: {
    readonly output?: string;
    readonly rejection_url?: string;
    readonly tool_calls: readonly { readonly id: string }[];
  };
}

export interface Posted {
  readonly status: number;
  readonly headers: Headers;
  readonly json: TealJson;
}

export interface TealOptions {
  readonly script: ModelScript;
  readonly agent?: Partial<AgentOptions>;
  readonly runtime?: Partial<RuntimeOptions>;
  readonly serve?: Partial<ServeOptions>;
}

/** Another surface, which decides single requests: `/test/decide?id=…&action=approve`. */
const decideRoute = routeAt("decide", async ({ request, caller }) => {
  const { searchParams } = new URL(request.url);
  const verdict = searchParams.get("action") === "approve" ? "approved" : "rejected";
  return Response.json(await caller.decide(searchParams.get("id") ?? "", { verdict }));
});

/** MathAgent 0.1, with a tool that needs an approval and one that asks the user. */
export async function tealServed({
  script,
  agent,
  runtime: runtimeOptions,
  serve: serveOptions,
}: TealOptions): Promise<Teal> {
  const runs: object[] = [];
  const dangerous = defineTool({
    name: "sensitive_plugin-delete_user_data",
    description: "Deletes",
    parameters: z.object({ id: z.int().optional() }),
    needsApproval: true,
    execute: (args) => {
      runs.push(args);
      return "deleted";
    },
  });
  const definition = defineAgent({
    name: "MathAgent",
    model: scriptedModel(script),
    tools: [dangerous, askUser()],
    ...agent,
  });
  const runtime = await runtimeOf({ agents: [definition], ...runtimeOptions });
  const served = serve(runtime, {
    surfaces: [tealSurface({ agents: [{ version: "0.1", definition }] }), surfaceOf(decideRoute)],
    ...serveOptions,
  });
  const post = async (path: string, body?: unknown, asked: Asked = {}): Promise<Posted> => {
    const response = await served.ask(`${address}${path}`, { method: "POST", body, ...asked });
    return { status: response.status, headers: response.headers, json: (await response.json()) as Posted["json"] };
  };
  return { ...served, runtime, runs, post };
}

export const text = (content: string) => ({ items: [{ content_type: "text", content }] });
export const deletion = { toolCalls: [{ name: "sensitive_plugin-delete_user_data", arguments: { id: 7 } }] };
export const uuid = expect.stringMatching(/^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/);

export interface Frame {
  readonly event: string;
  readonly data: TealJson;
}

/** The events of a stream, without its keep-alives. */
export async function framesOf(response: Response): Promise<Frame[]> {
  const blocks = (await response.text()).split("\n\n").filter((block) => block.startsWith("event: "));
  return blocks.map((block) => {
    const [event = "", ...data] = block.split("\n");
    return {
      event: event.slice("event: ".length),
      data: JSON.parse(data.map((line) => line.slice("data: ".length)).join("\n")) as Frame["data"],
    };
  });
}
