// An agent as one immutable value: read it, query it, store it as JSON, and compare it before and after a turn.
import { createAgent, defineTool } from "troupe";
import { type AgentState, agentStateJson, stepTypeOf, viewAgentState, withMetadata } from "troupe/state";
import { scriptedModel } from "troupe/testing";
import { z } from "zod";

const weigh = defineTool({
  name: "weigh",
  description: "Weighs a parcel.",
  parameters: z.object({ parcel: z.string() }),
  effect: "none",
  execute: ({ parcel }) => {
    if (parcel !== "A") throw new Error(`there is no parcel ${parcel}`);
    return "3 kg";
  },
});
const asks = (parcel: string) => ({ toolCalls: [{ name: "weigh", arguments: { parcel } }] });
const agent = await createAgent({
  agentId: "desk-7",
  tools: [weigh],
  model: scriptedModel([asks("A"), "Parcel A weighs 3 kg.", asks("B"), "I do not find parcel B."]),
});
await agent.start();

function show(state: AgentState): void {
  const { status, steps, stopReason, usage, errors, finalResponse } = viewAgentState(state);
  console.log(
    `${state.execution?.executionId}: ${status} (${stopReason}), ${usage.inputTokens + usage.outputTokens} tokens`,
  );
  for (const step of steps) console.log(`  step ${step.number}: ${stepTypeOf(step)}`);
  for (const { code, message } of errors) console.log(`  error ${code}: ${message}`);
  console.log(`  ${finalResponse}`);
}

await agent.executeTurn("How heavy is parcel A?").result;
const first = await agent.getState();
show(first);
await agent.executeTurn("And parcel B?").result;
const second = await agent.getState();
show(second);
// The value is immutable: the first one does not contain the second turn.
console.log(first.context.messages.length, "→", second.context.messages.length, "messages");
await agent.runtime.shutdown();

// As JSON text, for a file or another program. Parsing validates it.
const kept = JSON.stringify(agentStateJson.toJSON(second));
const back = withMetadata(agentStateJson.fromJSON(kept), { reviewedBy: "ada" }, Date.now());
console.log(viewAgentState(back).finalResponse, back.context.metadata);
try {
  agentStateJson.fromJSON(kept.replace('"executionCount":2', '"executionCount":"two"'));
} catch (error) {
  console.log(`refused: ${error instanceof Error ? error.message : String(error)}`);
}
