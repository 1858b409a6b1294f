// A run of two hours that ends at once: its model is overloaded, one tool takes an hour, and another one is cut off by its time limit.
import { defineAgent, defineTool, ModelError } from "troupe";
import { createFakeClock, runCase, scriptedModel } from "troupe/testing";
import { z } from "zod";

const clock = createFakeClock(new Date("2026-12-24T18:00:00Z"));
const HOUR = 3_600_000;

/** A tool that waits with the clock. A request to a real server in its place would take real time, and would not be cut short. */
function waiting(name: string, ms: number, timeoutMs: number) {
  return defineTool({
    name,
    description: `Prepares the ${name}.`,
    parameters: z.object({}),
    effect: "none",
    timeoutMs,
    execute: async (_args, { signal }) => {
      await clock.sleep(ms, signal);
      return `ready at ${new Date(clock.now()).toISOString().slice(11, 16)}`;
    },
  });
}

const overloaded = new ModelError("overloaded", {
  retryable: true,
  mayHaveBeenSent: true,
  status: 429,
  retryAfterMs: HOUR,
});
const model = scriptedModel([
  { error: overloaded },
  {
    toolCalls: [
      { name: "goose", arguments: {} },
      { name: "pudding", arguments: {} },
    ],
  },
  "The goose is ready, the pudding is not.",
]);
const cook = defineAgent({
  name: "cook",
  model,
  tools: [waiting("goose", HOUR, 2 * HOUR), waiting("pudding", 8 * HOUR, HOUR / 2)],
});

const result = await clock.runUntil(runCase(cook, "A dinner, please.", { clock, agentId: "cook-1" }));
for (const { name, result: text } of result.toolCalls) console.log(`${name}: ${text}`);
console.log(result.text);
console.log(`${result.durationMs / HOUR} hours of the clock have passed.`);
