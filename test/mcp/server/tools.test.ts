import { describe, expect, it } from "vitest";
import { connectedClient, eras, servedMcp, structuredIn, textIn } from "./served-desk.ts";

describe.each(eras)("tools for a client of the %s era", (era) => {
  it("are the agents and the tools for their turns", async () => {
    const { url } = await servedMcp();
    const client = await connectedClient(url, { era });
    const { tools } = await client.listTools();
    expect(tools.map(({ name, annotations }) => [name, annotations?.readOnlyHint])).toEqual([
      ["desk", false],
      ["table", true],
      ["turn_result", true],
      ["turn_abort", false],
    ]);
    expect(tools[0]?.inputSchema).toMatchObject({ required: ["input"], additionalProperties: false });
  });

  it("start a conversation, and continue it by its name", async () => {
    const { url, runtime } = await servedMcp();
    const client = await connectedClient(url, { era });
    const one = await client.callTool({ name: "desk", arguments: { input: "hello" } });
    expect(textIn(one)).toBe("1: hello");
    const { conversation } = structuredIn(one);
    const two = await client.callTool({ name: "desk", arguments: { input: "again", conversation } });
    expect([textIn(two), structuredIn(two).conversation]).toEqual(["2: again", conversation]);
    const named = await client.callTool({ name: "desk", arguments: { input: "hi", conversation: "holiday" } });
    expect([textIn(named), structuredIn(named).conversation]).toEqual(["1: hi", "holiday"]);
    expect(await runtime.list()).toHaveLength(2);
  });

  it("give the validated answer of an agent with an output schema, which refers to itself", async () => {
    const { url } = await servedMcp();
    const client = await connectedClient(url, { era });
    await client.listTools();
    const result = await client.callTool({ name: "table", arguments: { input: "a tree" } });
    expect(structuredIn(result)).toMatchObject({
      status: "completed",
      output: { name: "root", children: [{ name: "leaf", children: [] }] },
    });
  });

  it("refuse wrong arguments, and unknown turns, with a message for the model", async () => {
    const { url, runtime } = await servedMcp();
    const client = await connectedClient(url, { era });
    for (const wrong of [{}, { input: 5 }, { input: "" }, { input: "a", more: 1 }, { input: "a", key: "ä" }]) {
      const refused = await client.callTool({ name: "desk", arguments: wrong as Record<string, unknown> });
      expect([refused.isError, textIn(refused).length < 1_000]).toEqual([true, true]);
    }
    const result = await client.callTool({ name: "turn_result", arguments: { turnId: "nothing.1" } });
    expect([result.isError, textIn(result)]).toEqual([true, "there is no such turn"]);
    expect(await runtime.list()).toEqual([]);
  });

  it("hide the operator's details when an agent fails", async () => {
    const { url } = await servedMcp();
    const client = await connectedClient(url, { era });
    const failed = await client.callTool({ name: "desk", arguments: { input: "fail" } });
    expect(failed.isError).toBe(true);
    expect(JSON.stringify(failed)).not.toContain("10.0.0.7");
    expect(textIn(failed)).toMatch(/^The agent failed \(\w+\)\.$/);
  });
});
