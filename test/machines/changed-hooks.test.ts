import { expect, test } from "vitest";
import { type AgentDefinition, defineAgent, type Hook } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { elapse, entriesOfType } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate } from "../support/turn-probes.ts";
import { look } from "./scenario-tools.ts";

/** The agent as defined by one version of a program, with these afterTools hooks. */
function desk(script: Parameters<typeof scriptedModel>[0], afterTools: readonly Hook<"afterTools">[]): AgentDefinition {
  return defineAgent({ name: "desk", model: scriptedModel(script), tools: [look], hooks: { afterTools } });
}

describeRuntimes("a definition whose hooks changed while a turn was open", (stage) => {
  test.each([
    { now: 0, applied: 2 },
    { now: 1, applied: 2 },
    { now: 3, applied: 2 },
  ])("the turn continues with $now afterTools hooks instead of 2", async ({ now, applied }) => {
    const gate = createGate();
    const first = await stage().openProcess({
      agents: [desk([calling("look")], [() => undefined, async () => await gate.pass()])],
    });
    const agent = await first.runtime.agent("desk", { agentId: "desk" });
    await agent.start();
    const turnId = await agent.executeTurn("go").id;
    await gate.reached();
    first.kill();
    stage().expireLeases();

    const hooks = Array.from({ length: now }, (): Hook<"afterTools"> => () => undefined);
    const second = await stage().open({ agents: [desk(["done"], hooks)] });
    const again = await second.find("desk");
    await again.start();
    const { status, text } = await elapse(stage().clock, again.turn(turnId).result);
    expect({ status, text }).toEqual({ status: "completed", text: "done" });
    expect(await entriesOfType(second.stores, "desk", "hook.applied")).toHaveLength(applied);
  });
});
