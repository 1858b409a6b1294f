import { expect, test } from "vitest";
import { z } from "zod";
import { createToolRegistry, defineTool } from "../../src/tools/index.ts";

const make = (name: string) =>
  defineTool({ name, description: `Does ${name}.`, parameters: z.object({ a: z.string() }), execute: () => name });
const child = { kind: "subagent" as const, name: "reader", description: "Reads.", jsonSchema: { type: "object" } };

test("tools of several kinds are found by name, in the order of registration", () => {
  const registry = createToolRegistry([make("search"), child, make("send_mail")]);
  expect(registry.get("reader")?.kind).toBe("subagent");
  expect(registry.get("Search")).toBeUndefined();
  expect(registry.get("constructor")).toBeUndefined();
  expect(registry.tools.map((tool) => tool.name)).toEqual(["search", "reader", "send_mail"]);
});

test("the model's definitions are created once", () => {
  const registry = createToolRegistry([make("search"), child]);
  expect(registry.definitions()).toBe(registry.definitions());
  expect(registry.definitions()[1]).toEqual({ name: "reader", description: "Reads.", parameters: { type: "object" } });
  expect(registry.definitions()[0]?.parameters).toMatchObject({ type: "object", required: ["a"] });
});

test("a duplicate name is refused", () => {
  expect(() => createToolRegistry([make("reader"), child])).toThrow(/named "reader" \(a function and a subagent\)/);
});

test("an unknown name is answered with the most similar ones", () => {
  const names = ["search_web", "send_mail", "read_file", "write_file", "list_files"];
  const registry = createToolRegistry(names.map((name) => make(name)));
  expect(registry.unknownToolMessage("websearch")).toContain('no tool "websearch"');
  expect(registry.unknownToolMessage("Read-File")).toMatch(/closest names are: read_file, /);
  expect(registry.unknownToolMessage("x".repeat(1_000_000)).length).toBeLessThan(300);
  expect(createToolRegistry([]).unknownToolMessage("search")).toContain("this agent has no tools");
});
