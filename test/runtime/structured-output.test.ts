import { expect, it } from "vitest";
import { z } from "zod";
import { defineAgent } from "../../src/index.ts";
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
    expect(asked?.content).toContain("city: Invalid input: expected string, received number");
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
