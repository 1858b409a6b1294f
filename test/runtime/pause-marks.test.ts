import { expect, it } from "vitest";
import { AgentNotStartedError, defineAgent } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { loopTurns } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { createGate } from "../support/turn-probes.ts";

describeRuntimes("pausing an idle agent", (stage) => {
  it("before its first start() takes effect at the start", async () => {
    const model = scriptedModel("done");
    const runtime = await stage().open({ agents: [defineAgent({ name: "worker", model })] });
    const agent = await runtime.agent("worker");
    await agent.pause();
    await expect(agent.executeTurn("go").result).rejects.toThrow(AgentNotStartedError);
    await agent.start();
    expect(agent.state.status).toBe("paused");
    const turn = agent.executeTurn("go");
    await turn.id;
    await loopTurns(20);
    expect(model.calls).toHaveLength(0);
    await agent.resume();
    expect((await turn.result).text).toBe("done");
  });

  it("after shutdown() takes effect at the next start", async () => {
    const runtime = await stage().open({ agents: [defineAgent({ name: "worker", model: scriptedModel("done") })] });
    const agent = await runtime.agent("worker");
    await agent.start();
    await agent.shutdown();
    await agent.pause();
    await agent.start();
    expect(agent.state.status).toBe("paused");
    await agent.resume();
    expect((await agent.executeTurn("go").result).text).toBe("done");
  });

  it("survives shutdown() and start(), and ends with resume()", async () => {
    const runtime = await stage().open({ agents: [defineAgent({ name: "worker", model: scriptedModel("done") })] });
    const agent = await runtime.agent("worker");
    await agent.start();
    await agent.pause();
    await agent.shutdown();
    expect(agent.state.status).toBe("shutdown");
    await agent.start();
    expect(agent.state.status).toBe("paused");
    await agent.resume();
    expect(agent.state.status).toBe("ready");
    expect((await agent.executeTurn("go").result).text).toBe("done");
  });

  it("a failed agent that was paused accepts a turn after resume()", async () => {
    const model = scriptedModel([{ error: new Error("broken") }, "fine"]);
    const runtime = await stage().open({ agents: [defineAgent({ name: "worker", model })] });
    const agent = await runtime.agent("worker");
    await agent.start();
    await agent.executeTurn("go").result;
    await agent.pause();
    expect(agent.state.status).toBe("paused");
    await agent.resume();
    expect((await agent.executeTurn(null).result).text).toBe("fine");
  });

  it("a pause at the moment the turn ends leaves the agent paused", async () => {
    const gate = createGate<string>();
    const model = scriptedModel((_request, { signal }) => gate.pass(signal));
    const runtime = await stage().open({ agents: [defineAgent({ name: "worker", model })] });
    const agent = await runtime.agent("worker");
    await agent.start();
    const turn = agent.executeTurn("go");
    await gate.reached();
    const pausing = agent.pause();
    gate.open("the last word");
    await pausing;
    expect(["paused", "busy"]).toContain(agent.state.status);
    await loopTurns(20);
    expect(agent.state.status).toBe("paused");
    expect(agent.state.openTurnId === null).toBe(agent.state.turnCount === 1);
    await agent.resume();
    expect((await turn.result).text).toBe("the last word");
    expect(agent.state.status).toBe("ready");
  });
});
