import { expect, it } from "vitest";
import { z } from "zod";
import { defineAgent, ModelError, type Plugin, subagent, textOf } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling } from "../support/turn-probes.ts";

const answer = z.object({
  city: z.string(),
  people: z
    .number()
    .int()
    .transform((count) => count * 2),
});

function desk(script: Parameters<typeof scriptedModel>[0], output: z.ZodType = answer) {
  const model = scriptedModel(script);
  return { model, definition: defineAgent({ name: "desk", model, output }) };
}

describeRuntimes("structured output", (stage) => {
  async function ask(definition: ReturnType<typeof desk>["definition"]) {
    const runtime = await stage().open({ agents: [definition] });
    const agent = await runtime.agent("desk", { agentId: "a" });
    await agent.start();
    return { runtime, agent, result: await agent.executeTurn("go").result };
  }

  it("is the schema's output for the answer, and the schema is sent to the model", async () => {
    const { model, definition } = desk('{"city":"Bern","people":3}');
    const { result } = await ask(definition);
    expect(result).toMatchObject({ status: "completed", steps: 1, output: { city: "Bern", people: 6 } });
    expect(model.calls[0]?.responseFormat).toMatchObject({
      type: "json_schema",
      schema: { properties: { city: { type: "string" }, people: { type: "integer" } } },
    });
  });

  it("accepts JSON in a fenced block", async () => {
    const { result } = await ask(desk('```json\n{"city":"Bern","people":1}\n```').definition);
    expect(result.output).toEqual({ city: "Bern", people: 2 });
  });

  it("asks once more, with the validation error", async () => {
    const { model, definition } = desk(['{"city":7,"people":3}', '{"city":"Bern","people":3}']);
    const { agent, result } = await ask(definition);
    expect(result).toMatchObject({ status: "completed", steps: 2, output: { city: "Bern", people: 6 } });
    const asked = model.calls[1]?.messages.at(-1);
    expect(asked?.role).toBe("user");
    expect(asked?.content).toContain("city: Invalid input: received number (expected string)");
    expect((await agent.getMessages()).map(({ origin }) => origin)).toEqual(["user", "model", "runtime", "model"]);
  });

  it("fails the turn if the second answer does not fit either, and the agent accepts a new turn", async () => {
    const { definition } = desk(["no", "still no", '{"city":"Bern","people":1}']);
    const { agent, result } = await ask(definition);
    expect(result).toMatchObject({
      status: "failed",
      stopReason: "error",
      steps: 2,
      error: { code: "output_invalid" },
    });
    expect(result.error?.message).toContain("it is not JSON");
    expect(result.output).toBeUndefined();
    expect(agent.state.status).toBe("failed");
    expect((await agent.executeTurn("again").result).output).toEqual({ city: "Bern", people: 2 });
  });

  it("is not validated if the answer calls tools", async () => {
    const { model, definition } = desk([calling("none"), '{"city":"Bern","people":1}']);
    expect((await ask(definition)).result).toMatchObject({ status: "completed", steps: 2, output: { people: 2 } });
    expect(model.calls).toHaveLength(2);
  });

  it("runs the schema's own code once, even if the agent is restored", async () => {
    let runs = 0;
    const counted = z.object({ ok: z.boolean() }).refine(async () => {
      runs += 1;
      return true;
    });
    await ask(desk('{"ok":true}', counted).definition);
    expect(runs).toBe(1);
  });

  it("is shown while it is written, and never stored", async () => {
    const { definition } = desk({ deltas: ['{"city":"Be', 'rn, the city","peo', 'ple":3', "}"] });
    const runtime = await stage().open({ agents: [definition] });
    const agent = await runtime.agent(definition, { agentId: "a" });
    await agent.start();
    const turn = agent.executeTurn("go");
    const shown: unknown[] = [];
    for await (const event of turn) if (event.type === "output.delta") shown.push([event.step, event.output]);
    expect(shown).toEqual([
      [1, { city: "Be" }],
      [1, { city: "Bern, the city" }],
      [1, { city: "Bern, the city", people: 3 }],
    ]);
    expect((await turn.result).output).toEqual({ city: "Bern, the city", people: 6 });
    const again: string[] = [];
    for await (const event of agent.turn("a#1")) again.push(event.type);
    expect(again).toContain("turn.completed");
    expect(again).not.toContain("output.delta");
  });

  it("is shown as values of the turn, each attempt anew, without its wrapper", async () => {
    const list = { deltas: ['{"value":["a", "', 'b and a long rest"', "]}"] };
    const { definition } = desk(["nothing", list], z.array(z.string()));
    const runtime = await stage().open({ agents: [definition] });
    const agent = await runtime.agent(definition, { agentId: "a" });
    await agent.start();
    const shown: unknown[] = [];
    for await (const value of agent.executeTurn("go").partialOutputs()) shown.push(value);
    expect(shown).toEqual([
      ["a", ""],
      ["a", "b and a long rest"],
    ]);
  });

  it("a refusal ends the turn as a refusal: it is neither checked nor repaired", async () => {
    const { model, definition } = desk([
      { text: "I will not help with that.", finishReason: "content_filter" },
      '{"city":"Bern","people":1}',
    ]);
    const { runtime, agent, result } = await ask(definition);
    expect(result).toMatchObject({
      status: "stopped",
      stopReason: "refusal",
      text: "I will not help with that.",
      signal: { reason: "refusal", source: "model", message: "the model or its provider refused to answer" },
      stop: null,
      error: null,
      steps: 1,
    });
    expect(result.output).toBeUndefined();
    expect(model.calls).toHaveLength(1);
    expect(agent.state.status).toBe("ready");
    expect(await runtime.turns({ agentId: "a" })).toMatchObject([{ status: "stopped", stopReason: "refusal" }]);
    const ends: unknown[] = [];
    for await (const event of agent.turn("a#1")) if (event.type === "turn.stopped") ends.push(event);
    expect(ends).toMatchObject([{ stopReason: "refusal", text: "I will not help with that." }]);
    expect((await agent.executeTurn("again").result).output).toEqual({ city: "Bern", people: 2 });
  });

  it("a refusal without words, and one of an agent without a schema, end the same", async () => {
    const model = scriptedModel({ text: "", finishReason: "content_filter" });
    const { result } = await ask(defineAgent({ name: "desk", model }) as ReturnType<typeof desk>["definition"]);
    expect(result).toMatchObject({ status: "stopped", stopReason: "refusal", steps: 1 });
    expect(result.text).toBe("Task incomplete: the model or its provider refused to answer");
  });

  it("a lead is told that its subagent was refused an answer", async () => {
    const refused = scriptedModel({ text: "I will not.", finishReason: "content_filter" });
    const helper = defineAgent({ name: "helper", model: refused, output: answer });
    const model = scriptedModel([calling({ name: "helper", arguments: { input: "go" } }), "Then not."]);
    const definition = defineAgent({ name: "desk", model, tools: [subagent(helper)] });
    const { result } = await ask(definition as ReturnType<typeof desk>["definition"]);
    expect(result.text).toBe("Then not.");
    expect(textOf(model.calls[1]?.messages.at(-1)?.content ?? "")).toContain("stopped (refusal)");
    expect(textOf(model.calls[1]?.messages.at(-1)?.content ?? "")).toContain("I will not.");
  });

  it("a hook may have a refusal asked again", async () => {
    const model = scriptedModel([{ text: "No.", finishReason: "content_filter" }, '{"city":"Bern","people":1}']);
    const insist: Plugin = {
      name: "insist",
      hooks: {
        afterLlm: (draft) => {
          if (draft.response.finishReason === "content_filter") draft.continue();
        },
      },
    };
    const definition = defineAgent({ name: "desk", model, output: answer, plugins: [insist] });
    const { result } = await ask(definition as ReturnType<typeof desk>["definition"]);
    expect(result).toMatchObject({ status: "completed", stopReason: "completed", output: { people: 2 }, steps: 2 });
  });

  it("a prompt that the provider refuses ends the turn as a refusal too", async () => {
    const outcome = { retryable: false, mayHaveBeenSent: true, details: { kind: "refusal" } };
    const { definition } = desk({ error: new ModelError("The prompt violates a policy.", outcome) });
    const { agent, result } = await ask(definition);
    expect(result).toMatchObject({ status: "stopped", stopReason: "refusal", error: null });
    expect(result.text).toBe("Task incomplete: The prompt violates a policy.");
    expect(result.errors).toMatchObject([{ code: "refusal" }]);
    expect(agent.state.status).toBe("ready");
  });

  it("can be read for a turn that ended in another process", async () => {
    const { runtime } = await ask(desk('{"city":"Bern","people":3}').definition);
    await runtime.shutdown();
    const later = await stage().open({ agents: [desk("never").definition] });
    const agent = await later.find("a");
    expect((await agent.turn("a#1").result).output).toEqual({ city: "Bern", people: 6 });
  });
});

it("a schema without a JSON form is refused in defineAgent()", () => {
  expect(() => desk("", z.object({ when: z.date() }))).toThrow(/agent "desk": output has no JSON Schema/);
});
