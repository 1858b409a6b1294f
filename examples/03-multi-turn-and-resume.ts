// A conversation that outlives its process: the first process exits during a turn, the second continues it.
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRuntime, defineAgent, defineTool, textOf } from "troupe";
import { sqliteStores } from "troupe/stores/sqlite";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";

const weigh = defineTool({
  name: "weigh",
  description: "Puts a parcel on the scales.",
  parameters: z.object({ parcel: z.string() }),
  effect: "once", // the default: never repeated
  execute: ({ parcel }) => {
    console.log(`   (the scales are used for parcel ${parcel})`);
    return "3 kg";
  },
});

const folder = await mkdtemp(join(tmpdir(), "troupe-example-"));

/** The setup of each process. In the first one, the model never answers after a tool result. */
async function startProcess(isFirst: boolean) {
  const model = scriptedModel(({ messages }) => {
    const last = messages.at(-1);
    if (last?.role === "tool")
      return { text: `It weighs ${textOf(last.content)}.`, ...(isFirst && { delayUntil: never }) };
    if (messages.length > 2)
      return `We have spoken of ${messages.filter(({ role }) => role === "user").length} things.`;
    return { toolCalls: [{ name: "weigh", arguments: { parcel: "A" } }] };
  });
  const clerk = defineAgent({ name: "clerk", model, tools: [weigh] });
  const runtime = await createRuntime({ agents: [clerk], stores: sqliteStores(join(folder, "troupe.db")) });
  const agent = await runtime.agent("clerk", { agentId: "desk-7" });
  await agent.start(); // continues a turn that was left open
  return { runtime, agent };
}
const never = new Promise<never>(() => undefined);

const first = await startProcess(true);
for await (const event of first.agent.executeTurn("How heavy is parcel A?")) {
  console.log(`1  ${event.type}`);
  if (event.type === "tool.completed") break;
}
await first.runtime.shutdown();

const second = await startProcess(false);
const carriedOn = second.agent.openTurn();
console.log(`2  ${(await carriedOn?.id) ?? "no turn"} was open: ${(await carriedOn?.result)?.text ?? ""}`);
const next = await second.agent.executeTurn("What have we spoken of?").result;
console.log(`2  ${next.turnId}: ${next.text}`);
await second.runtime.shutdown();
await rm(folder, { recursive: true });
