import { expect, it } from "vitest";
import { z } from "zod";
import { type AgentOptions, clientTool, defineAgent, defineTool, openaiModel, subagent } from "../../src/index.ts";
import { hashOfDefinition, storedDefinitionSchema } from "../../src/state/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";

const look = (description = "Looks.") =>
  defineTool({
    name: "look",
    description,
    parameters: z.object({ at: z.string() }),
    secrets: { key: () => "secret-canary" },
    effect: "none",
    execute: () => "seen",
  });
const make = (options: Partial<AgentOptions> = {}) =>
  defineAgent({ name: "desk", instructions: "Answer.", tools: [look()], ...options, model: scriptedModel("ok") });

it("contains everything of a definition but its code, and its hash", () => {
  const child = defineAgent({ name: "reader", model: scriptedModel("read") });
  const { stored, ref } = make({
    tools: [look(), subagent(child), clientTool({ name: "pick", description: "Picks.", parameters: z.object({}) })],
    output: z.object({ n: z.number() }),
    temperature: 0.5,
    maxOutputTokens: 300,
    autoCompact: true,
    budget: { maxSteps: 3, maxCost: 0.5, deadline: new Date("2099-01-01") },
    plugins: [{ name: "audit" }],
  });
  expect(storedDefinitionSchema.parse(stored)).toEqual(stored);
  const { hash, ...content } = stored;
  expect(hash).toBe(ref.hash);
  expect(hashOfDefinition(content)).toBe(hash);
  expect(stored).toMatchObject({
    name: "desk",
    instructions: "Answer.",
    model: { provider: "scripted", name: "scripted" },
    tools: [
      { name: "look", kind: "function", description: "Looks.", effect: "none", jsonSchema: { required: ["at"] } },
      { name: "reader", kind: "subagent" },
      { name: "pick", kind: "client" },
    ],
    onDemandTools: [{ name: "read_artifact" }],
    history: "fullHistory",
    autoCompact: { strategy: "summarize", atPercent: 80 },
    temperature: 0.5,
    maxOutputTokens: 300,
    responseFormat: { type: "json_schema" },
    output: { type: "object" },
    limits: { maxSteps: 3, maxCostMicros: 500_000 },
    plugins: ["audit"],
    clientTools: false,
  });
  expect(stored.limits).not.toHaveProperty("deadlineAt");
  expect(Object.isFrozen(stored.tools)).toBe(true);
});

it("is the same for equal definitions, and differs after any change", () => {
  const { hash } = make().ref;
  expect(make().ref.hash).toBe(hash);
  const changes: Partial<AgentOptions>[] = [
    { instructions: "Answer well." },
    { instructions: () => "Answer." },
    { tools: [look("Looks well.")] },
    { temperature: 0 },
    { maxOutputTokens: 5 },
    { budget: { maxSteps: 4 } },
    { maxMessages: 9 },
    { clientTools: true },
  ];
  const hashes = changes.map((change) => make(change).ref.hash);
  expect(new Set([hash, ...hashes]).size).toBe(changes.length + 1);
});

it("contains no address and no key of its model", () => {
  const model = openaiModel("gpt-5-mini", { apiKey: "sk-canary", baseURL: "http://canary.example/v1" });
  const { stored } = defineAgent({ name: "desk", tools: [look()], model });
  expect(JSON.stringify(stored)).not.toContain("canary");
});
