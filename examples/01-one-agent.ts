// One agent, one turn, no network: the shortest possible program.
import { defineAgent, ModelError, offlineModel, run, TurnFailedError } from "troupe";
import { scriptedModel } from "troupe/testing";

const clerk = defineAgent({
  name: "clerk",
  // A rule-based engine instead of a language model: it quotes its input. For a real model, use openaiModel("gpt-5-mini").
  model: offlineModel(),
  instructions: "Answer from the notes that the user gives you.",
});

const question = `What does a lost library card cost?

The library opens at nine on weekdays and at ten on Saturdays. A book may be kept for four weeks. A lost library card
costs five euros. Reservations are free of charge.`;

const { text } = await run(clerk, question);
console.log(text, "\n");

// A turn is a stream of events with dotted names, each with its agent, turn and step.
const { status, stopReason, steps, usage } = await run(clerk, question, {
  agentId: "desk-7",
  onEvent: (event) => {
    if (event.type === "text.delta") process.stdout.write(event.text);
    else console.log(`${event.type === "model.responded" ? "\n" : ""}[${event.agentId}] ${event.type}`);
  },
});
console.log({ status, stopReason, steps, usage });

// A failed turn throws. This model simulates a provider that refuses its key.
const refusal = new ModelError("401: the key is not valid", { retryable: false, mayHaveBeenSent: true, status: 401 });
const locked = defineAgent({ name: "locked", model: scriptedModel({ error: refusal }) });
try {
  await run(locked, question);
} catch (error) {
  if (!(error instanceof TurnFailedError)) throw error;
  console.log(error.message, { spent: error.result.spent.own.calls });
}
