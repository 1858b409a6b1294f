import { expect, it } from "vitest";
import { defineAgent, textOf } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { describeRuntimes } from "../support/runtimes.ts";

/** More entries than the first two reads cover in the search for a turn that ended long ago. */
const TURNS = 30;

describeRuntimes("results of turns that ended long ago", (stage) => {
  it("equal the results at their ends, regardless of later turns", async () => {
    const model = scriptedModel(({ messages }) => `heard ${textOf(messages.at(-1)?.content ?? "")}`);
    const runtime = await stage().open({ agents: [defineAgent({ name: "talker", model })] });
    const agent = await runtime.agent("talker", { agentId: "t" });
    await agent.start();
    const told = [];
    for (let turn = 1; turn <= TURNS; turn += 1) told.push(await agent.executeTurn(`line ${turn}`).result);
    expect(told.at(-1)).toMatchObject({ turnId: `t#${TURNS}`, text: `heard line ${TURNS}`, steps: 1 });
    for (const result of told) expect(await agent.turn(result.turnId).result).toEqual(result);
    await agent.shutdown();
    for (const result of told) expect(await agent.turn(result.turnId).result).toEqual(result);
  });
});
