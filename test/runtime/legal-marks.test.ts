import { expect, it } from "vitest";
import { z } from "zod";
import { armFaultPoints } from "../../src/base/index.ts";
import { defineAgent, defineTool, subagent } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { loopTurns } from "../support/journal-probes.ts";
import { asks } from "../support/leads.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate } from "../support/turn-probes.ts";

describeRuntimes("an abort and a pause at the same time as other events", (stage) => {
  it("F18: a child in another process starts nothing after the abort was acknowledged, although its parent's turn has ended", async () => {
    const gate = createGate<string>();
    const thinking = Promise.withResolvers<void>();
    let asked = 0;
    const team = () => {
      const look = defineTool({
        name: "look",
        description: "Looks.",
        parameters: z.object({}),
        effect: "none",
        execute: () => gate.pass(),
      });
      const child = defineAgent({
        name: "child",
        model: scriptedModel(() => {
          asked += 1;
          if (asked > 1) thinking.resolve();
          return asked > 1 ? "child done" : calling("look");
        }),
        tools: [look],
      });
      return defineAgent({
        name: "lead",
        model: scriptedModel([calling(asks("child", "go"))]),
        tools: [subagent(child)],
      });
    };
    const first = await stage().openProcess({ agents: [team()] });
    const lead = await first.runtime.agent("lead", { agentId: "r" });
    await lead.start();
    const turn = lead.executeTurn("go");
    await gate.reached();
    const [childId = ""] = (await first.runtime.list({ rootAgentId: "r" })).flatMap(({ agentId, depth }) =>
      depth > 0 ? agentId : [],
    );
    await (await first.runtime.find(childId)).shutdown();
    const second = await stage().openProcess({ agents: [team()] });
    await (await second.runtime.find(childId)).start();
    await gate.reached(2);
    second.freeze();
    await lead.abort("enough");
    expect((await turn.result).status).toBe("stopped");
    // The child's result arrives before it learns of the abort.
    gate.open("seen");
    await loopTurns(20);
    second.thaw();
    await loopTurns(30);
    expect(asked).toBe(1);
  });

  it("L6: resume() ends a pause that held a turn which was aborted as it ended", async () => {
    const gate = createGate<string>();
    const model = scriptedModel((_request, { index }) => (index === 0 ? gate.pass() : "again"));
    const process = await stage().openProcess({ agents: [defineAgent({ name: "worker", model })] });
    const agent = await process.runtime.agent("worker", { agentId: "w" });
    await agent.start();
    const turn = agent.executeTurn("go");
    await gate.reached();
    const pausing = agent.pause();
    await loopTurns(5);
    // The abort is posted at the same moment as the model answers.
    const aborting = stage().look().abort({ tenant: "default", agentId: "w" }, abortOf("w#1"), stage().clock.now());
    gate.open("done");
    await aborting;
    await turn.result;
    await pausing;
    stage().clock.advance(5_000);
    await loopTurns(20);
    await agent.resume();
    await loopTurns(10);
    expect(agent.state.status).toBe("ready");
    expect((await agent.executeTurn("once more").result).text).toBe("again");
  });

  it("L6: a pause and an abort during a call's approval leave the agent ready", async () => {
    const look = defineTool({
      name: "look",
      description: "Looks.",
      parameters: z.object({}),
      effect: "once",
      execute: () => "seen",
    });
    const model = scriptedModel([calling("look"), "again"]);
    const { runtime } = await stage().openProcess({ agents: [defineAgent({ name: "worker", model, tools: [look] })] });
    const agent = await runtime.agent("worker", { agentId: "w" });
    await agent.start();
    const marks: Promise<unknown>[] = [];
    const disarm = armFaultPoints([
      {
        name: "call.gated",
        hit: 1,
        action: () => {
          marks.push(agent.pause({ now: true }), agent.abort("enough"));
        },
      },
    ]);
    try {
      expect((await agent.executeTurn("go").result).status).toBe("stopped");
      await Promise.all(marks);
      await loopTurns(20);
      expect(agent.state.status).toBe("ready");
      expect((await agent.executeTurn("once more").result).text).toBe("again");
    } finally {
      disarm();
    }
  });
});

function abortOf(turnId: string) {
  return { turnId, by: "user", reason: "enough", stopReason: "user_requested" } as const;
}
