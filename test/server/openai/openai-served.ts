import {
  type AgentDefinition,
  askUser,
  createRuntime,
  defineAgent,
  defineTool,
  type Runtime,
  type RuntimeOptions,
  subagent,
  textOf,
} from "troupe";
import { apiSurface, openaiSurface, type OpenAiSurfaceOptions, type ServeOptions } from "troupe/server";
import { scriptedModel } from "troupe/testing";
import { onTestFinished } from "vitest";
import { z } from "zod";
import { type Served, serve } from "../served.ts";

export interface OpenAiServed extends Served {
  readonly runtime: Runtime;
  readonly removed: string[];
}

/** An agent that follows its input: `remove`, `ask`, `show` (a tool of the client), `delegate`, `think`, `fail`, `loop`. */
export function desk(removed: string[] = []): AgentDefinition {
  const remove = defineTool({
    name: "remove",
    description: "Removes a file.",
    parameters: z.object({ path: z.string() }),
    needsApproval: true,
    execute: ({ path }, run) => {
      run.progress({ removing: path });
      removed.push(path);
      return `removed ${path}`;
    },
  });
  const look = defineTool({
    name: "look",
    description: "Looks.",
    parameters: z.object({}),
    effect: "none",
    execute: () => "a wall",
  });
  const removal = { name: "remove", arguments: { path: "a.txt" } };
  const reader = defineAgent({
    name: "reader",
    tools: [askUser()],
    model: scriptedModel(({ messages }) =>
      messages.at(-1)?.role === "tool"
        ? { deltas: ["Read", " it."] }
        : { toolCalls: [{ name: "ask_user", arguments: { question: "which page?" } }] },
    ),
  });
  const model = scriptedModel(({ messages }) => {
    const last = messages.at(-1);
    const said = textOf(last?.content ?? "");
    if (said === "loop" || said === "a wall")
      return { text: "Once more.", toolCalls: [{ name: "look", arguments: {} }] };
    if (last?.role === "tool") return { deltas: ["so: ", said] };
    if (said === "remove") return { text: "Let me remove it.", toolCalls: [removal] };
    if (said === "ask") return { toolCalls: [{ name: "ask_user", arguments: { question: "your name?" } }] };
    if (said === "show") return { toolCalls: [{ name: "show", arguments: { what: "a map" } }] };
    if (said === "show two") {
      return { text: "Both.", toolCalls: ["a map", "a plan"].map((what) => ({ name: "show", arguments: { what } })) };
    }
    if (said === "delegate") return { toolCalls: [{ name: "reader", arguments: { input: said } }] };
    if (said === "think") return { reasoning: "Let me see.", deltas: ["It ", "is ", "so."] };
    if (said === "fail") return { error: new Error("the model is broken") };
    const users = messages.filter(({ role }) => role === "user").map(({ content }) => textOf(content));
    return { deltas: [`${users.length}: `, said === "all" ? users.join("|") : said] };
  });
  return defineAgent({
    name: "desk",
    model,
    clientTools: true,
    tools: [remove, look, askUser(), subagent(reader)],
    budget: { maxSteps: 4 },
    maxModelAttempts: 1,
  });
}

/** A server with this surface and troupe's own API. */
export async function deskServed(
  options: Partial<RuntimeOptions> = {},
  { surface, ...serving }: Partial<ServeOptions> & { readonly surface?: OpenAiSurfaceOptions } = {},
): Promise<OpenAiServed> {
  const removed: string[] = [];
  const runtime = await createRuntime({ agents: [desk(removed)], ...options });
  onTestFinished(() => runtime.shutdown());
  return { ...serve(runtime, { surfaces: [apiSurface(), openaiSurface(surface)], ...serving }), runtime, removed };
}

/** A tool of the client. */
export const showTool = {
  type: "function" as const,
  function: {
    name: "show",
    description: "Shows something on the screen.",
    parameters: { type: "object", properties: { what: { type: "string" } }, required: ["what"] },
  },
};
