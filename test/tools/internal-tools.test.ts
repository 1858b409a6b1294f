import { expect, test } from "vitest";
import { z } from "zod";
import { InvalidInputError } from "../../src/errors/index.ts";
import { createToolRegistry, defineTool, type InternalToolName, internalTools } from "../../src/tools/index.ts";

async function parsed(name: InternalToolName, text: string) {
  const tool = internalTools.find((one) => one.name === name);
  if (tool === undefined) throw new Error(`there is no ${name}`);
  const result = await tool.parse(text);
  return result.ok ? result.json : result.message;
}

test("three tools on the agent's own context, which may be repeated freely and run nothing themselves (R6)", () => {
  expect(internalTools.map(({ name }) => name)).toEqual(["load_history", "list_tool_calls", "load_tool_results"]);
  for (const tool of internalTools) {
    expect(tool).toMatchObject({ kind: "internal", effect: "none", jsonSchema: { type: "object" } });
    expect("execute" in tool).toBe(false);
    expect(Object.isFrozen(tool)).toBe(true);
  }
  expect(Object.isFrozen(internalTools)).toBe(true);
});

test("their arguments are checked as those of every tool", async () => {
  expect(await parsed("load_history", "")).toEqual({});
  expect(await parsed("list_tool_calls", "{}")).toEqual({ limit: 20 });
  expect(await parsed("list_tool_calls", '{"limit":100,"name":"search"}')).toEqual({ limit: 100, name: "search" });
  expect(await parsed("list_tool_calls", '{"limit":101}')).toContain("limit: ");
  expect(await parsed("list_tool_calls", '{"limit":0}')).toContain("limit: ");
  expect(await parsed("load_tool_results", '{"callIds":["t:1:0"]}')).toEqual({ callIds: ["t:1:0"] });
  expect(await parsed("load_tool_results", '{"callIds":[]}')).toContain("callIds: ");
  expect(await parsed("load_tool_results", JSON.stringify({ callIds: Array(21).fill("t:1:0") }))).toContain(
    "callIds: ",
  );
  expect(await parsed("load_tool_results", "{}")).toContain("callIds: is missing");
});

test("if they are used, their names are reserved", () => {
  const own = defineTool({ name: "load_history", description: "Mine.", parameters: z.object({}), execute: () => "" });
  const register = () => createToolRegistry([own, ...internalTools]);
  expect(register).toThrow(InvalidInputError);
  expect(register).toThrow(
    /"load_history", which is the name of a tool that the runtime gives.*Give yours another name/,
  );
  expect(createToolRegistry([own]).tools).toHaveLength(1);
});
