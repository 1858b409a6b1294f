import { expect, it } from "vitest";
import { defineAgent, subagent, textOf } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { entriesOf, toolTextsOf } from "../support/journal-probes.ts";
import { asks, leadScript, reader } from "../support/leads.ts";
import { describeRuntimes } from "../support/runtimes.ts";

describeRuntimes("concurrent children", (stage) => {
  it("maxConcurrent of them work at a time, the others queue, and all finish", async () => {
    const slow = scriptedModel(({ messages }) => `done: ${textOf(messages.at(-1)?.content ?? "")}`);
    const worker = defineAgent({ name: "worker", model: slow });
    const lead = defineAgent({
      name: "lead",
      model: scriptedModel(leadScript(["a", "b", "c", "d", "e"].map((input) => asks("worker", input)))),
      tools: [subagent(worker, { policy: { maxConcurrent: 2 } })],
    });
    const runtime = await stage().open({ agents: [lead] });
    const agent = await runtime.agent("lead", { agentId: "root-1" });
    await agent.start();

    expect((await agent.executeTurn("go").result).status).toBe("completed");
    const changes = (await entriesOf(stage().look(), "root-1")).flatMap(({ type }) =>
      type === "child.spawned" ? [1] : type === "child.ended" ? [-1] : [],
    );
    let atWork = 0;
    const counts = changes.map((change) => (atWork += change));
    expect(counts).toHaveLength(10);
    expect(Math.max(...counts)).toBe(2);
    expect((await toolTextsOf(agent)).toSorted()).toEqual(["done: a", "done: b", "done: c", "done: d", "done: e"]);
  });
});

it("a limit that allows no child is refused", () => {
  expect(() => subagent(reader(), { policy: { maxConcurrent: 0 } })).toThrow(/maxConcurrent is 0.*at least 1/);
});
