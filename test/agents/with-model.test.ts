import { describe, expect, expectTypeOf, it } from "vitest";
import { type AgentDefinition, defineAgent, defineTool, openaiModel, run, subagent } from "../../src/index.ts";
import { scriptedModel, withModel } from "../../src/testing/index.ts";
import { z } from "zod";
import { calling } from "../support/turn-probes.ts";

const real = () => openaiModel("gpt-5-mini", { apiKey: "none", baseURL: "http://127.0.0.1:9" });
const look = defineTool({
  name: "look",
  description: "Looks.",
  parameters: z.object({}),
  execute: () => "It is over 250 francs.",
});
const reader = defineAgent({ name: "reader", model: real(), instructions: "Read.", tools: [look] });
const lead = defineAgent({
  name: "lead",
  model: real(),
  instructions: "Lead.",
  tools: [subagent(reader)],
  budget: { maxSteps: 4 },
});

const asking = () => scriptedModel([calling({ name: "reader", arguments: { input: "Read it." } }), "Over 250."]);

describe("withModel()", () => {
  it("runs the agent on another model, and its subagents on models by name", async () => {
    const model = asking();
    const reading = scriptedModel([calling("look"), "250 francs."]);
    const copy = withModel(lead, model, { subagents: { reader: reading } });
    expect((await run(copy, "How much?")).text).toBe("Over 250.");
    expect(model.calls[0]?.messages[0]).toMatchObject({ role: "system", content: "Lead." });
    expect(reading.calls[0]?.messages[0]).toMatchObject({ role: "system", content: "Read." });
    expect(model.calls[1]?.messages.at(-1)).toMatchObject({ role: "tool", content: "250 francs." });
  });

  it("leaves the definition unchanged, and includes the model in the copy's version", () => {
    const copy = withModel(lead, scriptedModel("Yes."));
    expect([lead.model.name, copy.model.name, copy.name]).toEqual(["gpt-5-mini", "scripted", "lead"]);
    expect(copy.limits).toEqual(lead.limits);
    expect(copy.ref.hash).not.toBe(lead.ref.hash);
    const defined = defineAgent({ name: "reader", model: scriptedModel("Yes."), instructions: "Read.", tools: [look] });
    expect(withModel(reader, scriptedModel("Yes.")).stored).toEqual(defined.stored);
  });

  it("keeps the models of subagents that are not named, and copies a shared one once", async () => {
    const writer = defineAgent({ name: "writer", model: real(), tools: [subagent(reader)] });
    const team = defineAgent({ name: "team", model: real(), tools: [subagent(writer), subagent(reader)] });
    expect(withModel(team, scriptedModel("Yes.")).tools.tools).toEqual(team.tools.tools);
    const deep = withModel(team, scriptedModel("Yes."), { subagents: { reader: scriptedModel("No.") } });
    expect((await run(deep, "go")).text).toBe("Yes.");
  });

  it("keeps the type of the definition", () => {
    expectTypeOf(withModel(lead, scriptedModel("Yes."))).toEqualTypeOf<typeof lead>();
    expectTypeOf<ReturnType<typeof withModel>>().toExtend<AgentDefinition>();
  });

  it("refuses an invalid definition, model or subagent", () => {
    expect(() => withModel({ name: "x" } as never, scriptedModel("Yes."))).toThrow("withModel(): its definition");
    expect(() => withModel(lead, {} as never)).toThrow("model must be a LanguageModel");
    expect(() => withModel(lead, real(), { subagents: { writer: real() } })).toThrow(
      'agent "lead" has no subagent "writer"; its subagents are reader',
    );
    expect(() => withModel(reader, real(), { subagents: { constructor: real() } as never })).toThrow(
      "it has no subagents",
    );
    expect(() => withModel(lead, real(), { subagents: { reader: 5 as never } })).toThrow("model must be");
  });
});
