import { expect, it } from "vitest";
import { z } from "zod";
import { defineAgent, defineTool, type EffectClass } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { startAgent } from "../support/deciding.ts";
import { loopTurns, toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate } from "../support/turn-probes.ts";

describeRuntimes("a tool whose definition changed while it ran", (stage) => {
  it.each<{ before: EffectClass; after: EffectClass; runs: number }>([
    { before: "once", after: "none", runs: 1 },
    { before: "once", after: "keyed", runs: 1 },
    { before: "none", after: "once", runs: 1 },
    { before: "none", after: "keyed", runs: 2 },
    { before: "keyed", after: "none", runs: 2 },
  ])("F2: started as $before, now declared as $after: the stricter class applies", async ({ before, after, runs }) => {
    const gate = createGate();
    let count = 0;
    const agentOf = (effect: EffectClass, run: () => unknown) =>
      defineAgent({
        name: "worker",
        model: scriptedModel(({ messages }) => (messages.at(-1)?.role === "tool" ? "the end" : calling("post"))),
        tools: [
          defineTool({
            name: "post",
            description: "Posts.",
            parameters: z.object({}),
            effect,
            execute: async () => {
              count += 1;
              await run();
              return "posted";
            },
          }),
        ],
      });
    const doomed = await stage().openProcess({ agents: [agentOf(before, () => gate.pass())] });
    (await startAgent(doomed.runtime, "worker", "w")).executeTurn("go");
    await gate.reached();
    await loopTurns(5);
    doomed.kill();
    stage().expireLeases();
    const runtime = await stage().open({ agents: [agentOf(after, () => undefined)] });
    await runtime.recover();
    const agent = await runtime.find("w");
    expect((await agent.turn("w#1").result).text).toBe("the end");
    expect(count).toBe(runs);
    const [told] = await toolTextsOf(agent);
    expect(told).toMatch(runs === 2 ? /^posted$/ : /outcome of this call of "post" is not known/);
  });
});
