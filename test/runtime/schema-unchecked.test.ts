import { expect, it } from "vitest";
import { defineAgent, defineTool } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, eventsOfTurn } from "../support/turn-probes.ts";

const foreign = defineTool({
  name: "foreign",
  description: "From elsewhere.",
  effect: "none",
  parameters: JSON.stringify({
    type: "object",
    properties: { a: { type: "string", pattern: "(x" }, b: { $ref: "https://example.com/b.json" } },
  }),
  execute: ({ a }) => `got ${typeof a === "string" ? a : "no text"}`,
});

describeRuntimes("a tool whose schema can only be checked in part", (stage) => {
  it("runs, and the turn that calls it warns once about the unchecked parts", async () => {
    const call = calling({ name: "foreign", arguments: { a: "xy", b: 1 } });
    const model = scriptedModel([call, call, "done"]);
    const runtime = await stage().open({ agents: [defineAgent({ name: "worker", model, tools: [foreign] })] });
    const agent = await runtime.agent("worker", { agentId: "worker-1" });
    await agent.start();
    const events = await eventsOfTurn(agent.executeTurn("go"));
    expect(await toolTextsOf(agent)).toEqual(["got xy", "got xy"]);
    expect(events.filter(({ type }) => type === "warning")).toEqual([
      expect.objectContaining({
        code: "schema_unchecked",
        message: expect.stringMatching(
          /foreign #\/properties\/a\/pattern: .*Unterminated group.*; foreign #\/properties\/b: \$ref/,
        ),
      }),
    ]);
    expect(model.calls[0]?.tools?.[0]?.parameters).toMatchObject({ properties: { a: { pattern: "(x" } } });
  });
});
