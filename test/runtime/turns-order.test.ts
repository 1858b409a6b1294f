import { expect, it } from "vitest";
import { AgentBusyError, defineAgent, type ModelRequest, textOf } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { createGate } from "../support/turn-probes.ts";

const lastTextOf = ({ messages }: ModelRequest): string => textOf(messages.at(-1)?.content ?? "");

describeRuntimes("turns of one agent", (stage) => {
  it("L5: share the whole conversation and are numbered from 1", async () => {
    const model = scriptedModel((request) => `answer ${request.messages.length}`);
    const runtime = await stage().open({ agents: [defineAgent({ name: "talker", model, instructions: "Be brief." })] });
    const agent = await runtime.agent("talker", { agentId: "t" });
    await agent.start();
    expect((await agent.executeTurn("first").result).turnId).toBe("t#1");
    expect((await agent.executeTurn("second").result).turnId).toBe("t#2");
    const asked = model.calls.at(-1)?.messages.map(({ role, content }) => [role, content]);
    expect(asked).toEqual([
      ["system", "Be brief."],
      ["user", "first"],
      ["assistant", "answer 2"],
      ["user", "second"],
    ]);
    expect(agent.state.turnCount).toBe(2);
    const messages = await agent.getMessages();
    expect(messages.map(({ role }) => role)).toEqual(["user", "assistant", "user", "assistant"]);
    expect((await agent.getMessages({ maxMessages: 1 })).map(({ content }) => content)).toEqual(["answer 4"]);
  });

  it("L5: null continues without a message", async () => {
    const model = scriptedModel(["one", "two"]);
    const runtime = await stage().open({ agents: [defineAgent({ name: "talker", model })] });
    const agent = await runtime.agent("talker");
    await agent.start();
    await agent.executeTurn("go").result;
    const result = await agent.executeTurn(null).result;
    expect(result).toMatchObject({ status: "completed", text: "two", steps: 1 });
    expect(model.calls[1]?.messages.map(({ role }) => role)).toEqual(["user", "assistant"]);
    expect((await agent.getMessages()).map(({ role }) => role)).toEqual(["user", "assistant", "assistant"]);
  });

  it("a second turn is refused with a typed error while one is open", async () => {
    const gate = createGate<string>();
    const model = scriptedModel((_request, { signal }) => gate.pass(signal));
    const runtime = await stage().open({ agents: [defineAgent({ name: "slow", model })] });
    const agent = await runtime.agent("slow", { agentId: "s" });
    await agent.start();
    const first = agent.executeTurn("one");
    const second = agent.executeTurn("two");
    await expect(second.result).rejects.toThrow(AgentBusyError);
    await expect(second.id).rejects.toMatchObject({ code: "agent_busy", details: { openTurnId: "s#1" } });
    gate.open("fine");
    expect((await first.result).text).toBe("fine");
    expect(model.calls).toHaveLength(1);
    expect(await agent.getMessages()).toHaveLength(2);
  });

  it("one opened while another process pauses the agent waits for resume() and starts once", async () => {
    const model = scriptedModel(["one", "two"]);
    const runtime = await stage().open({ agents: [defineAgent({ name: "talker", model })] });
    const agent = await runtime.agent("talker", { agentId: "p" });
    await agent.start();
    await agent.executeTurn("go").result;
    const key = { tenant: "default", agentId: "p" };
    const stores = stage().look();
    await stores.pause(key, "another process", 1);
    const turn = agent.executeTurn("again");
    expect(await turn.id).toBe("p#2");
    expect(model.calls).toHaveLength(1);
    await agent.resume();
    expect(await turn.result).toMatchObject({ status: "completed", text: "two" });
    expect(model.calls).toHaveLength(2);
    const rows = await stores.readJournal(key, 1);
    const begun = rows.flatMap(({ entries }) => entries).filter(({ type }) => type === "turn.started");
    expect(begun).toHaveLength(2);
  });

  it("a pause called right after one, without waiting, takes effect after it was opened", async () => {
    const model = scriptedModel(["one"]);
    const runtime = await stage().open({ agents: [defineAgent({ name: "talker", model })] });
    const agent = await runtime.agent("talker", { agentId: "q" });
    await agent.start();
    const turn = agent.executeTurn("go");
    const paused = agent.pause();
    expect(await turn.id).toBe("q#1");
    await paused;
    expect(agent.state.openTurnId).toBe(agent.state.turnCount === 0 ? "q#1" : null);
    await agent.resume();
    expect(await turn.result).toMatchObject({ status: "completed", text: "one" });
  });

  it("can be queued, and each sees the ones before", async () => {
    const gate = createGate();
    const model = scriptedModel(async (request, { index, signal }) => {
      if (index === 0) await gate.pass(signal);
      return `answer to ${lastTextOf(request)}`;
    });
    const runtime = await stage().open({ agents: [defineAgent({ name: "slow", model })] });
    const agent = await runtime.agent("slow");
    await agent.start();
    const first = agent.executeTurn("one");
    const second = agent.executeTurn("two", { ifBusy: "queue" });
    const third = agent.executeTurn("three", { ifBusy: "queue" });
    await gate.reached();
    expect([await first.id, await second.id, await third.id].map((id) => id.split("#")[1])).toEqual(["1", "2", "3"]);
    gate.open();
    const texts = await Promise.all([first.result, second.result, third.result]);
    expect(texts.map(({ text }) => text)).toEqual(["answer to one", "answer to two", "answer to three"]);
    expect(model.calls[2]?.messages).toHaveLength(5);
    expect(agent.state).toMatchObject({ status: "ready", turnCount: 3, openTurnId: null });
  });

  it("a queued turn can be aborted before its first step", async () => {
    const gate = createGate<string>();
    const model = scriptedModel((_request, { signal }) => gate.pass(signal));
    const runtime = await stage().open({ agents: [defineAgent({ name: "slow", model })] });
    const agent = await runtime.agent("slow");
    await agent.start();
    const first = agent.executeTurn("one");
    const second = agent.executeTurn("two", { ifBusy: "queue" });
    await gate.reached();
    await second.abort("not needed any more");
    gate.open("fine");
    expect(await first.result).toMatchObject({ status: "completed", text: "fine" });
    expect(await second.result).toMatchObject({ status: "stopped", stopReason: "user_requested", steps: 0 });
    expect(model.calls).toHaveLength(1);
  });

  it("of different agents run in parallel", async () => {
    const gate = createGate();
    const model = scriptedModel(async (request, { signal }) => {
      await gate.pass(signal);
      return lastTextOf(request);
    });
    const runtime = await stage().open({ agents: [defineAgent({ name: "echo", model })] });
    const agents = await Promise.all([1, 2, 3, 4, 5].map((n) => runtime.agent("echo", { agentId: `e${n}` })));
    await Promise.all(agents.map((agent) => agent.start()));
    const turns = agents.map((agent) => agent.executeTurn(agent.agentId));
    await gate.reached(5);
    gate.open();
    const results = await Promise.all(turns.map(({ result }) => result));
    expect(results.map(({ text }) => text)).toEqual(["e1", "e2", "e3", "e4", "e5"]);
  });
});
