import { defineAgent } from "troupe";
import { apiSurface } from "troupe/server";
import { scriptedModel } from "troupe/testing";
import { describe, expect, test } from "vitest";
import { assertNotDearer, assertNotRaised } from "../../src/server/core/turn-budget.ts";
import { runtimeOf, serve } from "./served.ts";

const agent = defineAgent({
  name: "clerk",
  model: scriptedModel("hello"),
  budget: { maxSteps: 5, maxCost: 1, maxSeconds: 60, strict: true },
});

describe("a caller may lower the limits of a turn, and not raise them", () => {
  test.each([
    { maxSteps: 5 },
    { maxSteps: 0 },
    { maxCost: 0.5, maxSeconds: 59 },
    // Limits that the agent does not have also lower its budget.
    { maxTokens: 1_000_000, maxToolCalls: 1_000, finalAnswer: true },
    {},
  ])("%j is accepted", (budget) => {
    expect(() => assertNotRaised(agent, budget, 0)).not.toThrow();
  });

  test.each([
    [{ maxSteps: 6 }, "budget.maxSteps"],
    [{ maxCost: 1.01 }, "budget.maxCost"],
    [{ maxSeconds: 61 }, "budget.maxSeconds"],
    [{ strict: false }, "budget.strict"],
  ])("%j is refused", (budget, field) => {
    expect(() => assertNotRaised(agent, budget, 0)).toThrow(`${field} exceeds the agent's own limit`);
  });
});

test("over HTTP a raised limit is 403, and no turn begins", async () => {
  const runtime = await runtimeOf({ agents: [agent] });
  const { ask } = serve(runtime, { surfaces: [apiSurface()] });
  const made = await ask("/api/agents", { method: "POST", body: { definition: "clerk" } });
  const { agentId } = (await made.json()) as { agentId: string };
  const body = { input: "hi", budget: { maxSteps: 50 } };
  const refused = await ask(`/api/agents/${agentId}/turns`, { method: "POST", body });
  expect(refused.status).toBe(403);
  expect(await refused.json()).toMatchObject({ error: { code: "policy_refused" } });
  expect(await runtime.turns()).toEqual([]);
});

describe("settings of a caller", () => {
  const model = scriptedModel("done");
  const bounded = defineAgent({ name: "bounded", model, maxOutputTokens: 500, reasoningEffort: "low" });
  const open = defineAgent({ name: "open", model });

  test.each([
    [bounded, { maxOutputTokens: 500, reasoningEffort: "low" }],
    [
      bounded,
      { maxOutputTokens: 1, reasoningEffort: "none", temperature: 2, stopSequences: ["a"], toolChoice: "none" },
    ],
    [bounded, {}],
    [open, { maxOutputTokens: 100_000, reasoningEffort: "max" }],
    [undefined, { maxOutputTokens: 100_000 }],
  ] as const)("may lower the definition's", (agent, settings) => {
    expect(() => assertNotDearer(agent, settings)).not.toThrow();
  });

  test.each([
    ["maxOutputTokens", { maxOutputTokens: 501 }],
    ["reasoningEffort", { reasoningEffort: "medium" }],
  ] as const)("may not raise %s", (field, settings) => {
    expect(() => assertNotDearer(bounded, settings)).toThrow(`settings.${field} exceeds the agent's own setting`);
  });
});
