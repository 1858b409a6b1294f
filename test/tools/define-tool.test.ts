import { describe, expect, expectTypeOf, test } from "vitest";
import { z } from "zod";
import { InvalidInputError } from "../../src/errors/index.ts";
import type { JsonObject } from "../../src/state/index.ts";
import { defineTool, type RunContext, type Tool } from "../../src/tools/index.ts";

const search = {
  name: "search",
  description: "Searches the archive.",
  parameters: z.object({ query: z.string(), limit: z.number().int().default(5) }),
  execute: () => "found",
};

describe("the defined tool", () => {
  test("the defaults are the careful ones", () => {
    const tool = defineTool(search);
    expect(tool).toMatchObject({ kind: "function", effect: "once", timeoutMs: 60_000, maxAttempts: 1 });
    expect(tool.maxOutputCharacters).toBe(32_000);
    expect(tool.concurrency).toBeUndefined();
    expect("reconcile" in tool).toBe(false);
    expect(Object.isFrozen(tool)).toBe(true);
  });

  test("the model gets the input side of a zod schema, without $schema", () => {
    expect(defineTool(search).jsonSchema).toEqual({
      type: "object",
      properties: {
        query: { type: "string" },
        limit: { type: "integer", default: 5, minimum: Number.MIN_SAFE_INTEGER, maximum: Number.MAX_SAFE_INTEGER },
      },
      required: ["query"],
    });
  });

  test.each(['{"properties":{}}', '{"type":["object","null"]}'])("%s is shown as an object", (parameters) => {
    expect(defineTool({ ...search, parameters }).jsonSchema).toEqual({ type: "object", properties: {} });
  });

  test("a JSON Schema text is unchanged, with properties if it lists none", () => {
    const parameters = '{"$schema":"http://json-schema.org/draft-07/schema#","type":"object"}';
    expect(defineTool({ ...search, parameters }).jsonSchema).toEqual({ type: "object", properties: {} });
  });

  test("arguments of execute and reconcile follow from the schema", () => {
    const typed = defineTool({
      ...search,
      execute: (args, run) => {
        expectTypeOf(args).toEqualTypeOf<{ query: string; limit: number }>();
        expectTypeOf(run).toEqualTypeOf<RunContext>();
      },
      reconcile: async (args) => {
        expectTypeOf(args.query).toBeString();
        return { done: true, result: "found" };
      },
    });
    const untyped = defineTool({
      ...search,
      parameters: '{"type":"object"}',
      execute: (args) => expectTypeOf(args).toEqualTypeOf<JsonObject>(),
    });
    expectTypeOf(typed).toEqualTypeOf<Tool<{ query: string; limit: number }>>();
    const together: readonly Tool[] = [typed, untyped];
    expect(together).toHaveLength(2);
  });

  test("execute keeps its definition as `this`", () => {
    const definition = {
      ...search,
      prefix: "hello ",
      execute(args: { query: string }) {
        return this.prefix + args.query;
      },
    };
    expect(defineTool(definition).execute({ query: "you", limit: 1 }, {} as RunContext)).toBe("hello you");
  });
});

describe("refused definitions", () => {
  const cases: readonly [string, object, RegExp][] = [
    ["a name with a space", { name: "my search" }, /"my search".*letters, digits/],
    ["an empty name", { name: "" }, /letters, digits/],
    ["a name of 65 characters", { name: "a".repeat(65) }, /1 to 64/],
    ["an empty description", { description: "  " }, /Tool "search": description is empty/],
    [
      "a description that is not a text",
      { description: 5 as never },
      /Tool "search": description is 5; say in a sentence/,
    ],
    ["a name that is not a text", { name: 5 as never }, /A tool cannot be named 5: use 1 to 64 letters/],
    ["an unknown effect", { effect: "twice" }, /effect is the text "twice"; use "none", "keyed" or "once"/],
    ["several attempts of a once tool", { maxAttempts: 2 }, /maxAttempts is 2.*"once" is never repeated/],
    ["half an attempt", { effect: "none", maxAttempts: 1.5 }, /maxAttempts is 1.5; use a whole number/],
    ["a concurrency of 0", { concurrency: 0 }, /concurrency is 0/],
    ["a timeout of 0", { timeoutMs: 0 }, /timeoutMs is 0; use a positive, finite number/],
    ["an infinite timeout", { timeoutMs: Number.POSITIVE_INFINITY }, /timeoutMs is Infinity/],
    ["a timeout that is not a number", { timeoutMs: Number.NaN }, /timeoutMs is NaN/],
    ["a missing execute", { execute: undefined }, /execute must be a function, not undefined/],
    ["a reconcile that is not a function", { reconcile: "yes" }, /reconcile must be a function, not string/],
    [
      "parameters that are not a schema",
      { parameters: { type: "object" } },
      /a schema of zod 4, arktype or valibot, or a string/,
    ],
    ["the reserved queue name", { queue: "wake" }, /queue is "wake", which is reserved for agents; give.*another name/],
    ["a queue with an invalid name", { queue: "a b" }, /queue "a b" .*is not a valid id: use 1 to 128 characters/],
    ["a priority without a queue", { priority: 1 }, /priority is set without a queue; set queue as well/],
    ["a priority out of range", { queue: "q", priority: -1 }, /priority is -1; use a whole number from 0 to 1,000,000/],
    [
      "a concurrency next to a queue",
      { queue: "q", concurrency: 2 },
      /set the concurrency of the queue on its workers.*concurrency: 2/,
    ],
    ["a zod schema that is not an object", { parameters: z.string() }, /must describe an object.*"string"/],
    [
      "a zod schema without a JSON Schema form",
      { parameters: z.object({ at: z.date() }) },
      /Date cannot be represented.*z\.iso/,
    ],
    ["a text that is not JSON", { parameters: '{"type":' }, /Tool "search": The JSON Schema.*not valid JSON/],
    ["a JSON text that is not a schema", { parameters: "[1]" }, /must be an object/],
    ["a root that is not an object", { parameters: '{"type":"array"}' }, /must describe an object.*"array"/],
  ];
  test.each(cases)("%s", (_name, change, message) => {
    const define = () => defineTool({ ...search, ...change });
    expect(define).toThrow(InvalidInputError);
    expect(define).toThrow(message);
  });

  test("keyed and none tools may be retried", () => {
    expect(defineTool({ ...search, effect: "keyed", maxAttempts: 3 }).maxAttempts).toBe(3);
    expect(defineTool({ ...search, effect: "none", maxAttempts: 3 }).maxAttempts).toBe(3);
  });
});
