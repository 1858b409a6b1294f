import { expect, it } from "vitest";
import { defineAgent } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { loopTurns } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { createGate } from "../support/turn-probes.ts";

describeRuntimes("an abort while the owner is dead", (stage) => {
  it("F19: an interrupted hook is not called again, and the model is not called", async () => {
    const hold = createGate();
    const called: string[] = [];
    const worker = (name: string) =>
      defineAgent({
        name: "worker",
        model: scriptedModel(() => {
          called.push(`${name}: model`);
          return "the end";
        }),
        hooks: {
          beforeLlm: async () => {
            called.push(`${name}: hook`);
            await hold.pass();
          },
        },
      });
    const doomed = await stage().openProcess({ agents: [worker("first")] });
    const agent = await doomed.runtime.agent("worker", { agentId: "w" });
    await agent.start();
    agent.executeTurn("go");
    await hold.reached();
    await loopTurns(5);
    doomed.kill();
    stage().expireLeases();
    const abort = { turnId: "w#1", by: "user", reason: "enough", stopReason: "user_requested" } as const;
    await stage().look().abort({ tenant: "default", agentId: "w" }, abort, stage().clock.now());
    const survivor = await stage().open({ agents: [worker("second")] });
    await survivor.recover();
    const result = await (await survivor.find("w")).turn("w#1").result;
    hold.open();
    await loopTurns(5);
    expect(result).toMatchObject({ status: "stopped", stopReason: "user_requested" });
    expect(called).toEqual(["first: hook"]);
  });
});
