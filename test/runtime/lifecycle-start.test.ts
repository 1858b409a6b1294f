import { expect, it } from "vitest";
import { AgentNotStartedError, defineAgent, InvalidInputError, NotFoundError } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { createGate } from "../support/turn-probes.ts";

const greeter = () => defineAgent({ name: "greeter", model: scriptedModel("hello") });

describeRuntimes("the lifecycle of an agent", (stage) => {
  it("L4: needs start() before its first turn, and fails with a typed error otherwise", async () => {
    const runtime = await stage().open({ agents: [greeter()] });
    const agent = await runtime.agent("greeter");
    expect(agent.state.status).toBe("created");
    const early = agent.executeTurn("hi");
    await expect(early.result).rejects.toThrow(AgentNotStartedError);
    await expect(early.settled).rejects.toThrow(/start\(\)/);
    await expect(early.id).rejects.toThrow(AgentNotStartedError);
    await agent.start();
    expect(agent.state.status).toBe("ready");
    expect((await agent.executeTurn("hi").result).text).toBe("hello");
  });

  it("L3: state contains status, number of turns, last activity and metadata", async () => {
    const gate = createGate<string>();
    const model = scriptedModel((_request, { signal }) => gate.pass(signal));
    const runtime = await stage().open({ agents: [defineAgent({ name: "slow", model })] });
    const agent = await runtime.agent("slow", { agentId: "desk", metadata: { room: "blue" }, sessionId: "s1" });
    expect(agent.contextId).toBe("desk");
    const born = agent.state.lastActivity;
    expect(agent.state).toMatchObject({
      status: "created",
      turnCount: 0,
      openTurnId: null,
      metadata: { room: "blue" },
    });
    await agent.start();
    stage().clock.advance(1_000);
    const turn = agent.executeTurn("go");
    await gate.reached();
    expect(agent.state).toMatchObject({ status: "busy", turnCount: 0, openTurnId: await turn.id });
    gate.open("done");
    await turn.result;
    expect(agent.state).toMatchObject({ status: "ready", turnCount: 1, openTurnId: null });
    expect(agent.state.lastActivity).toBe(born + 1_000);
    expect(agent.state.error).toBeUndefined();
  });

  it("L3: a handle that starts an agent that is already live knows its earlier turns", async () => {
    const runtime = await stage().open({ agents: [greeter()] });
    const [late, other] = [await runtime.agent("greeter", { agentId: "desk" }), await runtime.find("desk")];
    await other.start();
    await other.executeTurn("hi").result;
    await late.start();
    // The agent leaves this process; the handle reads nothing in between.
    await other.shutdown();
    expect(other.state).toMatchObject({ status: "shutdown", turnCount: 1 });
    expect(late.state).toMatchObject({ status: "shutdown", turnCount: 1 });
  });

  it("its handle has the fields fixed at creation, for subagents too", async () => {
    const worker = defineAgent({ name: "worker", model: scriptedModel("done") });
    const runtime = await stage().open({ agents: [greeter(), worker] });
    const createdAt = stage().clock.now();
    const made = await runtime.agent("greeter", { agentId: "desk", ownerId: "ada", sessionId: "s1" });
    stage().clock.advance(1_000);
    const definition = { name: "greeter", version: greeter().ref.hash };
    const fixed = { agentId: "desk", rootAgentId: "desk", ownerId: "ada", sessionId: "s1", definition, createdAt };
    expect(made).toMatchObject(fixed);
    expect(await runtime.find("desk")).toMatchObject(fixed);
    await made.start();
    const { agent: child } = await made.spawn(worker, "go", { key: "w" });
    expect(child).toMatchObject({ rootAgentId: "desk", ownerId: "ada", sessionId: "s1", createdAt: createdAt + 1_000 });
    expect(child.definition).toEqual({ name: "worker", version: worker.ref.hash });
    const plain = await runtime.agent("greeter");
    expect(plain).toMatchObject({ rootAgentId: plain.agentId, ownerId: null, sessionId: null });
  });

  it("is created once: the same id returns the same agent, and the id of another definition is refused", async () => {
    const other = defineAgent({ name: "other", model: scriptedModel("x") });
    const runtime = await stage().open({ agents: [greeter(), other] });
    const first = await runtime.agent("greeter", { agentId: "one" });
    await first.start();
    await first.executeTurn("hi").result;
    const again = await runtime.agent("greeter", { agentId: "one" });
    expect(again.state).toMatchObject({ status: "ready", turnCount: 1 });
    await expect(runtime.agent("other", { agentId: "one" })).rejects.toThrow(InvalidInputError);
    await expect(runtime.agent("nobody")).rejects.toThrow(/greeter, other/);
    await expect(runtime.agent("greeter", { agentId: "a b" })).rejects.toThrow(InvalidInputError);
    await expect(runtime.find("absent")).rejects.toThrow(NotFoundError);
    expect((await runtime.find("one")).state.turnCount).toBe(1);
  });

  it("can be started repeatedly", async () => {
    const runtime = await stage().open({ agents: [greeter()] });
    const agent = await runtime.agent("greeter");
    await Promise.all([agent.start(), agent.start()]);
    await agent.start();
    expect((await agent.executeTurn("hi").result).status).toBe("completed");
    expect(agent.state.turnCount).toBe(1);
  });

  it("L6: shutdown() releases it; only start() brings it back, with its whole history", async () => {
    const model = scriptedModel((request) => `I see ${request.messages.length}`);
    const runtime = await stage().open({ agents: [defineAgent({ name: "keeper", model })] });
    const agent = await runtime.agent("keeper");
    await agent.start();
    await agent.executeTurn("one").result;
    await agent.shutdown();
    expect(agent.state).toMatchObject({ status: "shutdown", turnCount: 1 });
    await expect(agent.executeTurn("two").result).rejects.toThrow(AgentNotStartedError);
    expect(await agent.getMessages()).toHaveLength(2);
    await agent.shutdown();
    await agent.start();
    expect(agent.state).toMatchObject({ status: "ready", turnCount: 1 });
    expect((await agent.executeTurn("two").result).text).toBe("I see 3");
  });

  it("refuses invalid input and changes nothing", async () => {
    const runtime = await stage().open({ agents: [greeter()] });
    const agent = await runtime.agent("greeter");
    await agent.start();
    const wrong = 7 as unknown as string;
    await expect(agent.executeTurn(wrong).result).rejects.toThrow(InvalidInputError);
    await expect(agent.executeTurn("hi", { budget: { maxSteps: -1 } }).result).rejects.toThrow(/maxSteps/);
    expect(agent.state).toMatchObject({ status: "ready", openTurnId: null });
    expect((await agent.executeTurn("hi").result).turnId).toBe(`${agent.agentId}#1`);
  });
});
