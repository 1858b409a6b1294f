// Runs a turn that a tool ends, until a fault kills the process.
import { appendFileSync } from "node:fs";
import { createRuntime, defineAgent, defineTool } from "troupe";
import { sqliteStores } from "troupe/stores/sqlite";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";

/** Its model answers once; each run of a tool adds a line to the file. `output`: the result is checked as structured output. */
export function endingDesk(file: string) {
  const tool = (name: string, endsTurn: boolean) =>
    defineTool({
      name,
      description: name,
      parameters: z.object({}),
      effect: "keyed",
      endsTurn,
      execute: () => {
        appendFileSync(file, `${name}\n`);
        return endsTurn ? '{"plan":"b"}' : "seen";
      },
    });
  return defineAgent({
    name: "desk",
    model: scriptedModel([{ toolCalls: [{ name: "look" }, { name: "submit" }] }]),
    tools: [tool("look", false), tool("submit", true)],
    output: z.object({ plan: z.string() }),
    hooks: { afterTools: () => undefined, onComplete: () => undefined },
  });
}

if (import.meta.main) {
  const [database = "", file = ""] = process.argv.slice(2);
  const runtime = await createRuntime({ agents: [endingDesk(file)], stores: sqliteStores(database) });
  const agent = await runtime.agent("desk", { agentId: "a" });
  await agent.start();
  await agent.executeTurn("go").result;
  await runtime.shutdown();
}
