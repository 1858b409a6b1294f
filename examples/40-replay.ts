// A recorded run is replayed against changed definitions: nothing is called, and the first difference is shown with its step.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createRuntime, defineAgent, defineTool, memoryStores } from "troupe";
import { checkUpgrade, recordedModel, replay, scriptedModel } from "troupe/testing";
import { z } from "zod";

const folder = mkdtempSync(join(tmpdir(), "troupe-replay-"));
const file = join(folder, "desk.json");

// In place of a provider: openaiModel("gpt-5-mini").
const provider = scriptedModel([
  { toolCalls: [{ name: "refund", arguments: { cents: 500 } }] },
  "You get 5 dollars back.",
]);

let refunds = 0;
const refund = defineTool({
  name: "refund",
  description: "Pays money back.",
  parameters: z.object({ cents: z.int() }),
  effect: "once",
  execute: ({ cents }) => {
    refunds += 1;
    return `refunded ${cents} cents`;
  },
});
const deskOf = (instructions: string) =>
  defineAgent({ name: "desk", model: recordedModel(provider, { file }), instructions, tools: [refund] });

// 1. A run, as in production. The answers of the model are recorded in a file.
const stores = memoryStores();
const runtime = await createRuntime({ agents: [deskOf("Be fair.\nBe brief.")], stores });
const agent = await runtime.agent("desk", { agentId: "complaint-7" });
await agent.start();
console.log((await agent.executeTurn("It arrived broken.").result).text);
await runtime.shutdown();

// 2. The same definitions ask the same. No model is called, and no money is paid.
const source = { stores, agentId: "complaint-7" };
const same = await replay(source, { agents: deskOf("Be fair.\nBe brief.") });
console.log(`equal: ${same.isEqual}, ${same.requests} requests compared, ${refunds} refund`);

// 3. A changed prompt is found at its step.
const changed = await replay(source, { agents: deskOf("Be fair.\nBe generous.") });
if (!changed.isEqual) {
  const { agentName, turn, step } = changed.divergedAt;
  console.log(`\n${agentName}, turn ${turn}, step ${step}: ${changed.part}\n${changed.diff}`);
}

// 4. All stored runs against the definitions of the next version.
const report = await checkUpgrade(stores, { agents: deskOf("Be fair.\nBe generous.") });
console.log(`\n${report.runs} run: ${report.same} asks the same, ${report.different} asks something else`);

// 5. The recorded answers serve tests: offline, without the provider.
const offline = recordedModel(undefined, { file, mode: "replay" });
const tested = await createRuntime({
  agents: [defineAgent({ name: "desk", model: offline, instructions: "Be fair.\nBe brief.", tools: [refund] })],
});
const testAgent = await tested.agent("desk");
await testAgent.start();
console.log((await testAgent.executeTurn("It arrived broken.").result).text);
await tested.shutdown();
rmSync(folder, { recursive: true });
