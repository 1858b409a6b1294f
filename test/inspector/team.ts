import { z } from "zod";
import {
  type AgentDefinition,
  createRuntime,
  defineAgent,
  defineTool,
  type Runtime,
  subagent,
} from "../../src/index.ts";
import type { StartedInspector } from "../../src/inspector/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";

/** A lead that calls a tool and a subagent in one answer. */
export function watchedTeam(): AgentDefinition {
  const look = defineTool({
    name: "look",
    description: "Looks.",
    parameters: z.object({ at: z.string() }),
    effect: "none",
    execute: () => "seen",
  });
  const reader = defineAgent({ name: "reader", model: scriptedModel("read") });
  return defineAgent({
    name: "lead",
    tools: [look, subagent(reader)],
    model: scriptedModel(({ messages }) =>
      messages.at(-1)?.role === "tool"
        ? "done"
        : {
            toolCalls: [
              { name: "look", arguments: { at: "it" } },
              { name: "reader", arguments: { input: "this" } },
            ],
          },
    ),
  });
}

/** A runtime that the inspector watches, with its lead `desk` started. */
export async function watched(
  inspector: Pick<StartedInspector, "watch">,
  options: { readonly restoreAfterCommit?: boolean } = {},
): Promise<{ runtime: Runtime; ask: () => Promise<string> }> {
  const runtime = await createRuntime({ agents: [watchedTeam()], ...options });
  inspector.watch(runtime);
  const agent = await runtime.agent("lead", { agentId: "desk" });
  await agent.start();
  return { runtime, ask: async () => (await agent.executeTurn("go").result).text };
}
