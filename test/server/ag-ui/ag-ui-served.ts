import {
  type AgentDefinition,
  askUser,
  createRuntime,
  defineAgent,
  defineTool,
  type Runtime,
  type RuntimeOptions,
  subagent,
} from "troupe";
import { agUiSurface, apiSurface, type ServeOptions } from "troupe/server";
import { createFakeClock, type FakeClock, scriptedModel } from "troupe/testing";
import { onTestFinished } from "vitest";
import { z } from "zod";
import { type Served, serve } from "../served.ts";

export interface DeskServed extends Served {
  readonly runtime: Runtime;
  readonly removed: string[];
}

function lastOf(messages: readonly { readonly content: unknown }[]): string {
  return String(messages.at(-1)?.content);
}

/** An agent that follows its input: `remove`, `ask`, `show` (a tool of the front end), `delegate`, `think`, `fail`. */
export function desk(removed: string[]): AgentDefinition {
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
  const removal = { name: "remove", arguments: { path: "a.txt" } };
  const reader = defineAgent({
    name: "reader",
    tools: [remove],
    model: scriptedModel(({ messages }) => {
      const isTold = lastOf(messages).includes("remove") && messages.at(-1)?.role === "user";
      return isTold ? { text: "I remove it.", toolCalls: [removal] } : { deltas: ["Read", " it."] };
    }),
  });
  const model = scriptedModel(({ messages }) => {
    const said = lastOf(messages);
    const told = messages.findLast(({ role }) => role === "user")?.content;
    if (messages.at(-1)?.role === "tool" && told === "remove, then fail")
      return { error: new Error("the model is broken") };
    if (messages.at(-1)?.role === "tool" && told === "talk, then end") return "";
    if (messages.at(-1)?.role === "tool") return { deltas: ["so: ", said] };
    if (said === "talk, then end") return { text: "First.", toolCalls: [{ name: "nothing" }] };
    if (said === "ask in time") return { toolCalls: [{ name: "ask_in_time", arguments: { question: "your name?" } }] };
    if (said === "remove" || said === "remove, then fail") return { toolCalls: [removal] };
    if (said === "remove two")
      return { text: "Both.", toolCalls: [removal, { ...removal, arguments: { path: "b.txt" } }] };
    if (said === "ask") return { toolCalls: [{ name: "ask_user", arguments: { question: "your name?" } }] };
    if (said === "show") return { toolCalls: [{ name: "show", arguments: { what: "a map" } }] };
    if (said.startsWith("delegate")) return { toolCalls: [{ name: "reader", arguments: { input: said } }] };
    if (said === "think") return { reasoning: "Let me see.", deltas: ["It ", "is ", "so."] };
    if (said === "fail") return { error: new Error("the model is broken") };
    return { deltas: [`${messages.filter(({ role }) => role === "user").length}: `, said] };
  });
  return defineAgent({
    name: "desk",
    model,
    clientTools: true,
    tools: [remove, askUser(), askUser({ name: "ask_in_time", expiresAfterMs: 1_000 }), subagent(reader)],
  });
}

/** A server with this surface and troupe's own API. */
export async function deskServed(
  options: Partial<RuntimeOptions> = {},
  serving: Partial<ServeOptions> = {},
): Promise<DeskServed> {
  const removed: string[] = [];
  const runtime = await createRuntime({ agents: [desk(removed)], ...options });
  onTestFinished(() => runtime.shutdown());
  return { ...serve(runtime, { surfaces: [apiSurface(), agUiSurface()], ...serving }), runtime, removed };
}

/** The same with a clock that the test moves. It starts in the future, because the client checks expiry by its own clock. */
export async function timedDesk(): Promise<DeskServed & { readonly clock: FakeClock }> {
  const clock = createFakeClock(Date.UTC(2099, 0, 1));
  return { ...(await deskServed({ clock }, { clock })), clock };
}

/** A tool of the front end. */
export const showTool = {
  name: "show",
  description: "Shows something on the screen.",
  parameters: { type: "object", properties: { what: { type: "string" } }, required: ["what"] },
};
