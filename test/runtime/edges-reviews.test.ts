import { expect, it } from "vitest";
import { z } from "zod";
import { AgentStopError, defineAgent, defineTool, type Hooks } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { startAgent } from "../support/deciding.ts";
import { loopTurns, toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate } from "../support/turn-probes.ts";

const look = defineTool({
  name: "look",
  description: "Looks.",
  parameters: z.object({ at: z.number() }),
  effect: "none",
  execute: ({ at }) => {
    if (at < 0) throw new Error("there is nothing there");
    return "seen";
  },
});
const round = calling({ name: "look", arguments: { at: 1 } }, { name: "look", arguments: { at: -1 } });

const definitionOf = (hooks: Hooks) =>
  defineAgent({ name: "worker", tools: [look], hooks, model: scriptedModel([round, "the end"]) });

describeRuntimes("hooks that review results", (stage) => {
  it.each(["afterEachTool", "onError"] as const)(
    "S11: AgentStopError of %s ends the turn after its round",
    async (hook) => {
      const seen: string[] = [];
      const hooks: Hooks = {
        [hook]: () => {
          throw new AgentStopError("seen enough");
        },
        afterTools: (draft) => void seen.push(...draft.results.map(({ outcome }) => outcome)),
      };
      const runtime = await stage().open({ agents: [definitionOf(hooks)] });
      const agent = await startAgent(runtime, "worker", "w");
      const result = await agent.executeTurn("go").result;
      expect(result).toMatchObject({ status: "stopped", stopReason: "stop_requested", steps: 1 });
      expect(result.signal).toMatchObject({ message: "seen enough", source: "hook:agent" });
      expect(seen).toEqual(["success", "error"]);
      expect(await toolTextsOf(agent)).toEqual(["seen", "Error: there is nothing there"]);
      expect(agent.state.status).toBe("ready");
    },
  );

  it.each(["afterEachTool", "onError"] as const)("%s that a crash cut runs again", async (hook) => {
    const gate = createGate();
    const seen: string[] = [];
    const doomed = await stage().openProcess({ agents: [definitionOf({ [hook]: () => gate.pass() })] });
    const before = await startAgent(doomed.runtime, "worker", "w");
    before.executeTurn("go");
    await gate.reached();
    await loopTurns(5);
    doomed.kill();
    stage().expireLeases();
    const hooks: Hooks = { [hook]: (draft: { call: { callId: string } }) => void seen.push(draft.call.callId) };
    const agents = [defineAgent({ name: "worker", tools: [look], hooks, model: scriptedModel(["the end"]) })];
    const runtime = await stage().open({ agents });
    await runtime.recover();
    const agent = await runtime.find("w");
    expect((await agent.turn("w#1").result).text).toBe("the end");
    expect(seen.toSorted()).toEqual(hook === "onError" ? ["w#1:1:1"] : ["w#1:1:0", "w#1:1:1"]);
    expect(await toolTextsOf(agent)).toEqual(["seen", "Error: there is nothing there"]);
  });
});
