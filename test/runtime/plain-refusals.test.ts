import { expect, it } from "vitest";
import { createAgent, createRuntime, defineAgent, InvalidInputError } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";

it("drain() rejects for an invalid timeout, like the other asynchronous functions", async () => {
  const runtime = await createRuntime({ agents: [defineAgent({ name: "worker", model: scriptedModel("x") })] });
  const drained = runtime.drain({ timeoutMs: -1 });
  await expect(drained).rejects.toThrow(InvalidInputError);
  await runtime.shutdown();
});

it("the error of an invalid reason names the method and the option", async () => {
  const agent = await createAgent({ name: "worker", model: scriptedModel("x") });
  await agent.start();
  await expect(agent.abort(5 as never)).rejects.toThrow("agent.abort(): reason is 5; expected a text, or leave it out");
  await agent.runtime.shutdown();
});
