import { toStandardJsonSchema } from "@valibot/to-json-schema";
import { type } from "arktype";
import { clientTool, createRuntime, defineAgent, defineTool, subagent } from "troupe";
import { scriptedModel } from "troupe/testing";
import * as v from "valibot";
import { describe, expect, test } from "vitest";
import { z } from "zod";
import { z as z42 } from "zod-4.2";
import { z as z40 } from "zod-lowest";
import * as mini from "zod/mini";
import type { ToolParameters } from "../../src/tools/index.ts";

/** A library of the reader's own that implements both standards. */
const own = {
  "~standard": {
    version: 1 as const,
    vendor: "own",
    validate: (given: unknown) => {
      const { city, days } = given as { city?: unknown; days?: unknown };
      if (typeof city !== "string") return { issues: [{ message: "must be text", path: [{ key: "city" }] }] };
      return { value: { city, days: typeof days === "number" ? days : 1 } };
    },
    jsonSchema: {
      input: () => ({
        $schema: "https://json-schema.org/draft/2020-12/schema",
        type: "object",
        properties: { city: { type: "string" }, days: { type: "number", default: 1 } },
        required: ["city"],
      }),
      output: () => ({}),
    },
  },
};

const libraries = {
  "zod 4.0": z40.object({ city: z40.string(), days: z40.number().default(1) }),
  "zod 4.2": z42.object({ city: z42.string(), days: z42.number().default(1) }),
  zod: z.object({ city: z.string(), days: z.number().default(1) }),
  "zod/mini": mini.object({ city: mini.string(), days: mini._default(mini.number(), 1) }),
  arktype: type({ city: "string", days: "number = 1" }),
  valibot: toStandardJsonSchema(v.object({ city: v.string(), days: v.optional(v.number(), 1) })),
  "a library of one's own": own,
} as const;

describe.each(Object.entries(libraries))("a schema of %s", (_library, schema) => {
  test("describes and checks the arguments of a tool, and fills in defaults", async () => {
    const seen: unknown[] = [];
    const weather = defineTool({
      name: "weather",
      description: "The weather.",
      parameters: schema,
      effect: "none",
      execute: (given) => void seen.push(given),
    });
    expect(weather.jsonSchema).toMatchObject({
      type: "object",
      properties: { city: { type: "string" }, days: { type: "number" } },
      required: ["city"],
    });
    expect(weather.jsonSchema).not.toHaveProperty("$schema");
    const model = scriptedModel([
      { toolCalls: [{ name: "weather", arguments: { days: 2 } }] },
      { toolCalls: [{ name: "weather", arguments: { city: "Bern" } }] },
      "Sunny.",
    ]);
    const agent = defineAgent({ name: "agent", model, tools: [weather] });
    const runtime = await createRuntime({ agents: [agent] });
    const clerk = await runtime.agent(agent);
    await clerk.start();
    expect((await clerk.executeTurn("Weather?").result).text).toBe("Sunny.");
    expect(seen).toEqual([{ city: "Bern", days: 1 }]);
    expect(JSON.stringify(model.calls[1]?.messages)).toContain("city: ");
    await runtime.shutdown();
  });

  test("describes and checks an output", async () => {
    const model = scriptedModel(['{"days":3}', '{"city":"Bern","days":3}']);
    const agent = defineAgent({ name: "agent", model, output: schema });
    expect(agent.output?.jsonSchema).toMatchObject({ type: "object", required: expect.arrayContaining(["city"]) });
    const runtime = await createRuntime({ agents: [agent] });
    const clerk = await runtime.agent(agent);
    await clerk.start();
    expect((await clerk.executeTurn("Where?").result).output).toEqual({ city: "Bern", days: 3 });
    expect(model.calls).toHaveLength(2);
    await runtime.shutdown();
  });

  test("checks the arguments of subagents and client tools", async () => {
    const child = defineAgent({ name: "child", model: scriptedModel("Read.") });
    const tools = [
      subagent(child, { parameters: schema }),
      clientTool({ name: "ask_client", description: "Asks.", parameters: schema }),
    ];
    for (const tool of tools) {
      expect(await tool.parse('{"city":"Bern"}')).toMatchObject({ ok: true, json: { city: "Bern", days: 1 } });
      expect(await tool.parse('{"days":1}')).toMatchObject({ ok: false, issues: [{ path: "city" }] });
    }
  });
});

function throwing() {
  const jsonSchema = {
    input: () => {
      throw new Error("no JSON for this");
    },
  };
  return { "~standard": { ...own["~standard"], jsonSchema } };
}

function toolWith(parameters: unknown) {
  return defineTool({
    name: "weather",
    description: "The weather.",
    parameters: parameters as ToolParameters,
    execute: () => "",
  });
}

describe("a schema that cannot be used", () => {
  test.each([
    [
      "without a JSON Schema",
      v.object({ city: v.string() }),
      "wrap it in toStandardJsonSchema() of @valibot/to-json-schema",
    ],
    [
      "of a library without Standard JSON Schema",
      { "~standard": { version: 1, vendor: "x", validate: () => ({ value: 1 }) } },
      "implements Standard JSON Schema",
    ],
    [
      "of a later version of the standard",
      { "~standard": { ...own["~standard"], version: 2 } },
      "must be a schema of zod 4, arktype or valibot",
    ],
    ["whose JSON Schema throws", throwing(), "no JSON for this"],
    ["that describes no object", type("string"), "must describe an object"],
    ["that is a plain object", { city: "string" }, "must be a schema of zod 4, arktype or valibot"],
    ["that is missing", undefined, "must be a schema of zod 4, arktype or valibot"],
    ["that is null", null, "must be a schema of zod 4, arktype or valibot"],
  ])("is refused: one %s", (_what, schema, message) => {
    expect(() => toolWith(schema)).toThrow(message);
  });

  test("is refused as an output", () => {
    const model = scriptedModel("");
    const output: unknown = { city: "string" };
    expect(() => defineAgent({ name: "agent", model, output: output as typeof own })).toThrow(
      'agent "agent": output is an object; expected a schema of zod 4, arktype or valibot',
    );
    expect(() => defineAgent({ name: "agent", model, output: v.object({}) })).toThrow("toStandardJsonSchema()");
  });
});

test.each([
  [
    "throws",
    () => {
      throw new Error("a broken check");
    },
  ],
  ["rejects", () => Promise.reject(new Error("a broken check"))],
  ["returns nothing", () => undefined],
])("a check that %s is told to the model, and the process survives", async (_how, validate) => {
  const schema: unknown = { "~standard": { ...own["~standard"], validate } };
  const tool = toolWith(schema);
  expect(await tool.parse('{"city":"Bern"}')).toMatchObject({
    ok: false,
    message: expect.stringContaining("they could not be checked"),
  });
});

test("an asynchronous check of zod runs once, and its rejection does not end the process", async () => {
  let runs = 0;
  const city = z.string().refine(async () => {
    runs += 1;
    throw new Error("no connection");
  });
  const tool = toolWith(z.object({ city }));
  expect(await tool.parse('{"city":"Bern"}')).toMatchObject({ ok: false });
  expect(runs).toBe(1);
});
