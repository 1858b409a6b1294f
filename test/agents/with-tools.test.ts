import { describe, expect, it } from "vitest";
import { z } from "zod";
import { clientTool, defineAgent, defineTool, run, subagent, textOf } from "../../src/index.ts";
import { scriptedModel, type ToolStub, withTools } from "../../src/testing/index.ts";
import { anyValues, classicValues, isTaken } from "../support/wrong-values.ts";

let ran: string[] = [];
function team() {
  ran = [];
  const pay = defineTool({
    name: "pay",
    description: "Pays.",
    parameters: z.object({ cents: z.int().min(1) }),
    effect: "keyed",
    maxAttempts: 2,
    queue: "payments",
    secrets: { key: () => "secret-key" },
    execute: () => void ran.push("pay"),
  });
  const pick = clientTool({ name: "pick", description: "Picks.", parameters: z.object({}) });
  const clerkModel = scriptedModel([{ toolCalls: [{ name: "pay", arguments: { cents: 5 } }] }, "paid by the clerk"]);
  const clerk = defineAgent({ name: "clerk", model: clerkModel, tools: [pay] });
  return { pay, pick, clerk, clerkModel };
}

describe("withTools", () => {
  it("replaces a tool also in subagents, with its schema and effect class, and leaves the original as it is", async () => {
    const { clerk, clerkModel, pay } = team();
    const lead = defineAgent({
      name: "lead",
      model: scriptedModel([{ toolCalls: [{ name: "clerk", arguments: { input: "Pay." } }] }, "done"]),
      tools: [subagent(clerk)],
    });
    const seen: unknown[] = [];

    const copy = withTools(lead, { pay: (args: { cents: number }) => void seen.push(args) });
    expect((await run(copy, "Go.")).text).toBe("done");

    expect(seen).toEqual([{ cents: 5 }]);
    expect(ran).toEqual([]);
    expect(textOf(clerkModel.calls[1]?.messages.at(-1)?.content ?? "x")).toBe("");
    const [child] = copy.tools.tools;
    const replaced = child?.kind === "subagent" ? child.definition.tools.get("pay") : undefined;
    expect(replaced).toMatchObject({ kind: "function", effect: "keyed", maxAttempts: 2, jsonSchema: pay.jsonSchema });
    expect(replaced).not.toHaveProperty("queue");
    expect(clerk.tools.get("pay")).toBe(pay);
  });

  it("checks arguments by the tool's schema, and shows thrown errors to the model", async () => {
    const { pay } = team();
    const model = scriptedModel([
      { toolCalls: [{ name: "pay", arguments: { cents: 0 } }] },
      { toolCalls: [{ name: "pay", arguments: { cents: 1 } }] },
      "done",
    ]);
    const calls: unknown[] = [];
    const stub: ToolStub = (args) => {
      calls.push(args);
      throw new Error("the till is closed");
    };

    await run(withTools(defineAgent({ name: "clerk", model, tools: [pay] }), { pay: stub }), "Go.");

    expect(calls.every((args) => (args as { cents: number }).cents === 1)).toBe(true);
    expect(JSON.stringify(model.calls[1]?.messages.at(-1))).toMatch(/cents/);
    expect(JSON.stringify(model.calls[2]?.messages.at(-1))).toContain("the till is closed");
  });

  it("replaces client tools and whole subagents", async () => {
    const { clerk, pick } = team();
    const model = scriptedModel([
      { toolCalls: [{ name: "pick" }, { name: "clerk", arguments: { input: "Pay." } }] },
      "done",
    ]);
    const lead = defineAgent({ name: "lead", model, tools: [pick, subagent(clerk)] });

    const { text } = await run(withTools(lead, { pick: () => "red", clerk: () => ({ paid: true }) }), "Go.");

    expect(text).toBe("done");
    const results = model.calls[1]?.messages.flatMap((one) => (one.role === "tool" ? [textOf(one.content)] : []));
    expect(results).toEqual(["red", '{"paid":true}']);
  });

  it("refuses unknown names, and values of other kinds", async () => {
    const { clerk } = team();
    expect(() => withTools(clerk, { refund: () => "x" })).toThrow(
      'withTools(): no agent of "clerk" has a tool "refund" that can be replaced; there are pay',
    );
    const bare = defineAgent({ name: "bare", model: scriptedModel("x") });
    expect(() => withTools(bare, { pay: () => "x" })).toThrow(/there are none/);
    for (const value of [...classicValues(), ...anyValues(30)]) {
      await isTaken("withTools()", () => withTools(value as typeof clerk, {}));
      await isTaken("withTools()", () => withTools(clerk, value as Record<string, ToolStub>));
      if (typeof value === "function") continue;
      await isTaken("withTools()", () => withTools(clerk, { pay: value as ToolStub }));
    }
    expect(withTools(clerk, {})).toBe(clerk);
  });
});
