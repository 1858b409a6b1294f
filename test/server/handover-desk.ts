import { type AgentDefinition, createRuntime, defineAgent, defineTool, type Runtime, subagent, textOf } from "troupe";
import { scriptedModel } from "troupe/testing";
import { onTestFinished } from "vitest";
import { z } from "zod";
import type { Surface } from "troupe/server";
import { type Served, serve } from "./served.ts";

const none = z.object({});

const calls = (...names: readonly string[]) => ({ toolCalls: names.map((name) => ({ name })) });

/**
 * An agent whose tools end its turns, as its input tells: `look`, `remove` (with approval), `hand over`, `hand over to remove`, `both`
 * (two of them), `show and look` (with a tool of the page). `show` calls only the tool of the page.
 */
export function handoverDesk(): AgentDefinition {
  const look = defineTool({
    name: "look",
    description: "Looks it up.",
    parameters: none,
    effect: "none",
    endsTurn: true,
    execute: () => "It is in shelf 7.",
  });
  const remove = defineTool({
    name: "remove",
    description: "Removes it.",
    parameters: none,
    needsApproval: true,
    endsTurn: true,
    execute: () => "It is removed.",
  });
  const expert = defineAgent({
    name: "expert",
    tools: [remove],
    model: scriptedModel(({ messages }) => {
      const said = textOf(messages.at(-1)?.content ?? "");
      return said === "remove" ? { toolCalls: [{ name: "remove" }] } : { deltas: ["Ask ", "the librarian."] };
    }),
  });
  const model = scriptedModel(({ messages }) => {
    const said = textOf(messages.at(-1)?.content ?? "");
    if (messages.at(-1)?.role !== "user") return "Once more.";
    if (said === "both") return { text: "Let me see.", toolCalls: [{ name: "look" }, expertCall("x")] };
    if (said === "remove") return calls("remove");
    if (said === "hand over") return { toolCalls: [expertCall("x")] };
    if (said === "hand over to remove") return { toolCalls: [expertCall("remove")] };
    if (said === "show and look")
      return { toolCalls: [{ name: "show", arguments: { what: "a map" } }, { name: "look" }] };
    if (said === "show") return { toolCalls: [{ name: "show", arguments: { what: "a map" } }] };
    if (said === "look") return calls("look");
    return { deltas: ["You said: ", said] };
  });
  return defineAgent({
    name: "desk",
    model,
    clientTools: true,
    tools: [look, remove, subagent(expert, { endsTurn: true, history: "conversation" })],
  });
}

function expertCall(input: string) {
  return { name: "expert", arguments: { input } };
}

export async function serveHandover(surface: Surface): Promise<Served & { readonly runtime: Runtime }> {
  const runtime = await createRuntime({ agents: [handoverDesk()], streaming: "always" });
  onTestFinished(() => runtime.shutdown());
  return { ...serve(runtime, { surfaces: [surface] }), runtime };
}
