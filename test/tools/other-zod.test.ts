// An application may have more than one copy of zod, for instance through a linked clone or a workspace: only the schema counts.
import { createRuntime, defineAgent, defineTool, subagent } from "troupe";
import { scriptedModel } from "troupe/testing";
import { expect, test } from "vitest";
import { z } from "zod";
import { z as other } from "zod-lowest";
import { z as three } from "zod-lowest/v3";
import type { ToolParameters } from "../../src/tools/index.ts";

test("a schema of another copy and version of zod 4 describes and checks arguments, answers and inputs", async () => {
  expect(other.ZodObject).not.toBe(z.ZodObject);
  const seen: unknown[] = [];
  const add = defineTool({
    name: "add",
    description: "Adds.",
    parameters: other.object({ a: other.number().describe("the first"), b: other.number().default(2) }),
    effect: "none",
    execute: (given) => {
      seen.push(given);
      return "added";
    },
  });
  const reader = defineAgent({ name: "reader", model: scriptedModel("Read.") });
  const model = scriptedModel([
    { toolCalls: [{ name: "add", arguments: { a: "one" } }] },
    { toolCalls: [{ name: "add", arguments: { a: 1 } }] },
    { toolCalls: [{ name: "reader", arguments: { page: 7 } }] },
    '{"sum":"three"}',
    '{"sum":3}',
  ]);
  const input = { parameters: other.object({ page: other.number() }), input: () => "page 7" };
  const clerk = defineAgent({
    name: "clerk",
    tools: [add, subagent(reader, input)],
    output: other.object({ sum: other.number() }),
    model,
  });
  const runtime = await createRuntime({ agents: [clerk] });
  const agent = await runtime.agent("clerk");
  await agent.start();
  const turn = agent.executeTurn("Add.");
  const told: string[] = [];
  for await (const event of turn) {
    if (event.type === "tool.failed") told.push(event.error?.message ?? "");
    if (event.type === "tool.completed") told.push(event.name);
  }
  expect((await turn.result).output).toEqual({ sum: 3 });
  expect(seen).toEqual([{ a: 1, b: 2 }]);
  expect(JSON.stringify(model.calls[0]?.tools)).toContain('"description":"the first"');
  expect(told).toEqual([expect.stringContaining("a: Invalid input: received string"), "add", "reader"]);
  await runtime.shutdown();
});

test("a schema of zod 3 is refused with an explanation", () => {
  const parameters: unknown = three.object({ a: three.number() });
  expect(() =>
    defineTool({ name: "add", description: "Adds.", parameters: parameters as ToolParameters, execute: () => "" }),
  ).toThrow("use zod 4, because zod 3 cannot write one");
});
