import { expect, it } from "vitest";
import { z } from "zod";
import { AgentStopError, defineAgent, defineTool, type Hooks, subagent } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { startAgent } from "../support/deciding.ts";
import { entriesOfType, loopTurns, toolTextsOf } from "../support/journal-probes.ts";
import { asks } from "../support/leads.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate } from "../support/turn-probes.ts";

describeRuntimes("slow beforeEachTool hooks", (stage) => {
  const started = async (beforeEachTool: NonNullable<Hooks["beforeEachTool"]>) => {
    const ran: string[] = [];
    const look = defineTool({
      name: "look",
      description: "Looks.",
      parameters: z.object({}),
      effect: "none",
      execute: (_args, run) => {
        ran.push(run.callId);
        return "seen";
      },
    });
    const model = scriptedModel([calling("look"), "never"]);
    const worker = defineAgent({ name: "worker", model, tools: [look], hooks: { beforeEachTool } });
    const runtime = await stage().open({ agents: [worker] });
    return { agent: await startAgent(runtime, "worker", "w"), ran };
  };

  it("F34: stop() of a hook that outlives its activation stops the turn, and the call still runs", async () => {
    const gate = createGate();
    const { agent, ran } = await started(async (draft) => {
      await gate.pass();
      draft.stop("enough");
    });
    const turn = agent.executeTurn("go");
    await gate.reached();
    await loopTurns(5);
    gate.open();
    expect(await turn.result).toMatchObject({ status: "stopped", stopReason: "stop_requested", steps: 1 });
    expect(gate.count).toBe(1);
    expect(ran).toEqual(["w#1:1:0"]);
    expect(await toolTextsOf(agent)).toEqual(["seen"]);
    expect(await entriesOfType(stage().look(), "w", "stop.signalled")).toHaveLength(1);
  });

  it("F34: AgentStopError of a hook that outlives its activation stops the turn and denies the call", async () => {
    const gate = createGate();
    const { agent, ran } = await started(async () => {
      await gate.pass();
      throw new AgentStopError("enough");
    });
    const turn = agent.executeTurn("go");
    await gate.reached();
    await loopTurns(5);
    gate.open();
    expect(await turn.result).toMatchObject({ status: "stopped", signal: { message: "enough", source: "hook:agent" } });
    expect(gate.count).toBe(1);
    expect(ran).toEqual([]);
    expect(await toolTextsOf(agent)).toEqual(["The run was stopped: enough"]);
  });
});

function breaks(): string {
  throw new RangeError("no input");
}

describeRuntimes("tools whose own code fails before the call runs", (stage) => {
  it("a subagent whose input function throws fails only that call", async () => {
    const reader = defineAgent({ name: "reader", model: scriptedModel("read") });
    const tools = [subagent(reader), subagent(reader, { name: "broken", input: breaks })];
    const model = scriptedModel([calling(asks("broken", "x"), asks("reader", "x")), "the end"]);
    const runtime = await stage().open({ agents: [defineAgent({ name: "worker", model, tools })] });
    const agent = await startAgent(runtime, "worker", "w");
    expect((await agent.executeTurn("go").result).text).toBe("the end");
    expect((await toolTextsOf(agent)).toSorted()).toEqual(["Error: no input", "read"]);
  });

  it("S11: AgentStopError of needsApproval stops the turn without running the call", async () => {
    const ran: string[] = [];
    const pay = defineTool({
      name: "pay",
      description: "Pays.",
      parameters: z.object({}),
      needsApproval: () => {
        throw new AgentStopError("the bank is closed");
      },
      execute: (_args, run) => void ran.push(run.callId),
    });
    const worker = defineAgent({ name: "worker", model: scriptedModel([calling("pay"), "never"]), tools: [pay] });
    const runtime = await stage().open({ agents: [worker] });
    const agent = await startAgent(runtime, "worker", "w");
    const result = await agent.executeTurn("go").result;
    expect(result).toMatchObject({ status: "stopped", stopReason: "stop_requested", steps: 1 });
    expect(result.signal).toMatchObject({ message: "the bank is closed", source: "tool:pay" });
    expect(ran).toEqual([]);
    expect(await toolTextsOf(agent)).toEqual(["The run was stopped: the bank is closed"]);
  });
});
