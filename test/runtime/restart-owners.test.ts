import { expect, it } from "vitest";
import { z } from "zod";
import { AlreadyOwnedError, defineAgent, defineTool } from "../../src/index.ts";
import { type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { elapse, entriesOf, loopTurns, orderFault } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate, eventsOfTurn } from "../support/turn-probes.ts";

const worker = (script: ModelScript) => defineAgent({ name: "worker", model: scriptedModel(script) });

const acting = (text: () => Promise<string>) =>
  defineTool({ name: "act", description: "Acts.", parameters: z.object({}), effect: "keyed", execute: text });

const acter = (act: () => Promise<string>) => {
  const model = scriptedModel(({ messages }) => (messages.at(-1)?.role === "tool" ? "done" : calling("act")));
  return defineAgent({ name: "worker", model, tools: [acting(act)] });
};

describeRuntimes("two processes on the same stores", (stage) => {
  /** One process owns the agent "o"; the other has only a handle. */
  const open = async (script: ModelScript) => {
    const owning = await stage().openProcess({ agents: [worker(script)] });
    const agent = await owning.runtime.agent("worker", { agentId: "o" });
    await agent.start();
    const other = await stage().openProcess({ agents: [worker("the other's model")] });
    return { owning, agent, other, remote: await other.runtime.find("o") };
  };

  it("only one process can run an agent: the other is refused with a typed error", async () => {
    const { agent, remote } = await open("fine");
    await expect(remote.start()).rejects.toThrow(AlreadyOwnedError);
    expect((await agent.executeTurn("go").result).text).toBe("fine");
    await agent.shutdown();
    await remote.start();
    expect((await remote.executeTurn("go").result).text).toBe("the other's model");
    await expect(agent.start()).rejects.toThrow(AlreadyOwnedError);
  });

  it("a turn opened in the other process is run by the owner, and its result arrives there", async () => {
    const { agent, remote } = await open("the owner's model");
    const turn = remote.executeTurn("go");
    const result = await elapse(stage().clock, turn.result, 500);
    expect(result).toMatchObject({ status: "completed", text: "the owner's model", turnId: "o#1" });
    expect(agent.state.turnCount).toBe(1);
    expect((await eventsOfTurn(turn)).at(-1)).toMatchObject({ type: "turn.completed", text: "the owner's model" });
    await expect(remote.executeTurn("again").id).resolves.toBe("o#2");
  });

  it("a stream in the other process ends with the turn", async () => {
    const { remote } = await open("the owner's model");
    const turn = remote.executeTurn("go");
    const events = await elapse(stage().clock, eventsOfTurn(turn), 500);
    expect(events.filter(({ cursor }) => cursor !== null).map(({ type }) => type)).toEqual([
      "lifecycle.changed",
      "turn.started",
      "step.started",
      "model.responded",
      "turn.completed",
    ]);
  });

  it("abort, pause and resume from the other process reach the owner", async () => {
    const gates = [createGate<string>(), createGate<string>()];
    const { agent, remote } = await open(
      async (_request, { index, signal }) => (await gates[index]?.pass(signal)) ?? "fine",
    );
    const first = agent.executeTurn("one");
    await gates[0]?.reached();
    await remote.abort("from afar");
    expect(await elapse(stage().clock, first.result, 500)).toMatchObject({
      status: "stopped",
      signal: { message: "from afar" },
    });
    await remote.pause();
    const second = agent.executeTurn("two");
    await second.id;
    await loopTurns(20);
    expect(gates[1]?.count).toBe(0);
    gates[1]?.open("resumed");
    await remote.resume();
    expect(await elapse(stage().clock, second.result, 500)).toMatchObject({ status: "completed", text: "resumed" });
  });

  it("a frozen owner loses the agent when its lease runs out; its late writes are refused, and nothing happens twice", async () => {
    const gate = createGate<string>();
    const { owning, agent, remote } = await open((_request, { signal }) => gate.pass(signal));
    const turn = agent.executeTurn("go");
    await gate.reached();
    owning.freeze();
    gate.open("from the frozen owner");
    await loopTurns(20);
    await expect(remote.start()).rejects.toThrow(AlreadyOwnedError);
    stage().expireLeases();
    await remote.start();
    const result = await remote.turn("o#1").result;
    expect(result).toMatchObject({ status: "completed", text: "the other's model" });
    owning.thaw();
    expect(await elapse(stage().clock, turn.result, 500)).toMatchObject({ text: "the other's model" });
    await loopTurns(50);
    const entries = await entriesOf(stage().look(), "o");
    expect(entries.map(({ seq }) => seq)).toEqual(entries.map((_entry, index) => index + 1));
    expect(entries.filter(({ type }) => type === "turn.ended")).toHaveLength(1);
    expect(entries.filter(({ type }) => type === "model.responded")).toHaveLength(1);
    expect((await remote.getMessages()).map(({ content }) => content)).toEqual(["go", "the other's model"]);
    expect(remote.state).toMatchObject({ status: "ready", turnCount: 1 });
    await expect(agent.start()).rejects.toThrow(AlreadyOwnedError);
    // The old owner has released the agent: a turn opened there is run by the new owner.
    const next = agent.executeTurn("next");
    expect((await elapse(stage().clock, next.result, 500)).text).toBe("the other's model");
  });

  it("a frozen owner that comes back in time keeps its agent", async () => {
    const gate = createGate<string>();
    const { owning, agent, remote } = await open((_request, { signal }) => gate.pass(signal));
    const turn = agent.executeTurn("go");
    await gate.reached();
    owning.freeze();
    stage().clock.advance(9_000);
    await expect(remote.start()).rejects.toThrow(AlreadyOwnedError);
    owning.thaw();
    gate.open("kept");
    expect(await turn.result).toMatchObject({ status: "completed", text: "kept" });
  });

  it("a tool of the frozen owner that ends late adds no second result", async () => {
    const gate = createGate<string>();
    const owning = await stage().openProcess({ agents: [acter(() => gate.pass())] });
    const agent = await owning.runtime.agent("worker", { agentId: "o" });
    await agent.start();
    agent.executeTurn("go").result.catch(() => undefined);
    await gate.reached();
    owning.freeze();
    stage().expireLeases();
    const other = await stage().open({ agents: [acter(async () => "acted by the other")] });
    const remote = await other.find("o");
    await remote.start();
    expect(await remote.turn("o#1").result).toMatchObject({ status: "completed", text: "done" });
    gate.open("acted by the frozen");
    owning.thaw();
    await loopTurns(50);
    const messages = await remote.getMessages();
    expect(messages.map(({ content }) => content)).toEqual(["go", "", "acted by the other", "done"]);
    expect(orderFault(messages)).toBeUndefined();
  });

  it("F19: an abort while the owner is dead takes effect at recovery, before any effect", async () => {
    const gate = createGate<string>();
    const { owning, agent, other, remote } = await open((_request, { signal }) => gate.pass(signal));
    agent.executeTurn("go").result.catch(() => undefined);
    await gate.reached();
    owning.kill();
    await remote.abort("while it was dead");
    expect((await stage().look().readAgent({ tenant: "default", agentId: "o" }))?.openTurnId).toBe("o#1");
    stage().expireLeases();
    // Another process may already have recovered the agent.
    await other.runtime.recover();
    const result = await remote.turn("o#1").result;
    expect(result).toMatchObject({
      status: "stopped",
      stopReason: "user_requested",
      text: expect.stringContaining("while it was dead"),
    });
    expect((await remote.getMessages()).map(({ role }) => role)).toEqual(["user", "assistant"]);
    expect(remote.state).toMatchObject({ status: "ready", turnCount: 1 });
  });

  it("a turn opened while the agent's owner is dead runs as soon as another process takes the agent", async () => {
    const { owning, other, remote } = await open("never");
    owning.kill();
    const turn = remote.executeTurn("go");
    await turn.id;
    stage().expireLeases();
    await other.runtime.recover();
    expect((await turn.result).text).toBe("the other's model");
  });
});
