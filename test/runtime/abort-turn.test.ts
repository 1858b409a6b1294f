import { expect, it } from "vitest";
import { z } from "zod";
import { type AgentDefinition, defineAgent, defineTool, subagent } from "../../src/index.ts";
import { type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { entriesOf, entriesOfType, loopTurns, orderFault, toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate, eventsOfTurn, type Gate, nextEvent } from "../support/turn-probes.ts";

const aWhile = 20;

const slowTool = (gate: Gate<string>, effect: "none" | "once") =>
  defineTool({
    name: "slow",
    description: "Takes its time.",
    parameters: z.object({}),
    effect,
    execute: (_args, run) => gate.pass(run.signal),
  });

/** A tree with the same width on every level. All leaves wait at the gate. */
const tree = (gate: Gate<string>, width: number): AgentDefinition => {
  const last: ModelScript = (_request, { signal }) => gate.pass(signal);
  const names = Array.from({ length: width }, () => ({ name: "leaf", arguments: { input: "x" } }));
  const leaf = defineAgent({ name: "leaf", model: scriptedModel(last) });
  const middle = defineAgent({
    name: "middle",
    model: scriptedModel(({ messages }) => (messages.at(-1)?.role === "tool" ? "over" : calling(...names))),
    tools: [subagent(leaf)],
  });
  return defineAgent({
    name: "top",
    model: scriptedModel(({ messages }) =>
      messages.at(-1)?.role === "tool"
        ? "over"
        : calling({ name: "middle", arguments: { input: "x" } }, { name: "middle", arguments: { input: "y" } }),
    ),
    tools: [subagent(middle)],
  });
};

describeRuntimes("abort", (stage) => {
  const open = async (definition: AgentDefinition) => {
    const runtime = await stage().open({ agents: [definition] });
    const agent = await runtime.agent(definition.name, { agentId: "a" });
    await agent.start();
    return { runtime, agent };
  };
  it("S12: an abort before the first step ends the turn with 0 steps and no model call", async () => {
    const model = scriptedModel("never");
    const { agent } = await open(defineAgent({ name: "worker", model }));
    const turn = agent.executeTurn("go");
    await turn.abort("changed my mind");
    const result = await turn.result;
    expect(result).toMatchObject({ status: "stopped", stopReason: "user_requested", steps: 0, toolCalls: 0 });
    expect(result.text).toContain("changed my mind");
    expect(model.calls).toHaveLength(0);
    expect(agent.state).toMatchObject({ status: "ready", turnCount: 1, openTurnId: null });
  });

  it("S12: an abort while thinking cuts the call, settles it, and leaves the agent ready for the next turn", async () => {
    const gate = createGate<string>();
    let aborted = false;
    const model = scriptedModel(async (_request, { index, signal }) => {
      if (index > 0) return "next";
      signal.addEventListener("abort", () => {
        aborted = true;
      });
      return await gate.pass(signal);
    });
    const { agent, runtime } = await open(defineAgent({ name: "worker", model }));
    const turn = agent.executeTurn("go", { budget: { maxTokens: 100_000 } });
    await gate.reached();
    await turn.abort("enough");
    expect(await turn.result).toMatchObject({ status: "stopped", stopReason: "user_requested", steps: 1 });
    expect(aborted).toBe(true);
    const [account] = await runtime.accounts("a");
    expect(account?.reserved).toMatchObject({ tokens: 0, costMicros: 0 });
    gate.open("too late");
    await loopTurns(aWhile);
    expect((await agent.getMessages()).map(({ role }) => role)).toEqual(["user", "assistant"]);
    expect(await agent.executeTurn("again").result).toMatchObject({ status: "completed", text: "next" });
    expect(orderFault(await agent.getMessages())).toBeUndefined();
  });

  it("H10: an abort while tools run gives every open call a result and drops late results", async () => {
    const gate = createGate<string>();
    const quick = defineTool({
      name: "quick",
      description: "Is quick.",
      parameters: z.object({}),
      effect: "none",
      execute: () => "quick result",
    });
    const model = scriptedModel([calling("quick", "slow"), "next"]);
    const { agent } = await open(defineAgent({ name: "worker", model, tools: [slowTool(gate, "none"), quick] }));
    const turn = agent.executeTurn("go");
    await gate.reached();
    await loopTurns(aWhile);
    await turn.abort();
    expect(await turn.result).toMatchObject({ status: "stopped", stopReason: "user_requested", toolCalls: 2 });
    gate.open("too late");
    await loopTurns(aWhile);
    expect(await toolTextsOf(agent)).toEqual(["quick result", "Interrupted by user"]);
    expect(orderFault(await agent.getMessages())).toBeUndefined();
    expect(await agent.executeTurn("again").result).toMatchObject({ text: "next" });
  });

  it.each([
    { effect: "once", read: /outcome of this call of "slow" is not known: Interrupted by user.*It is not repeated/ },
    { effect: "none", read: /^Interrupted by user$/ },
  ] as const)(
    "after an abort the next turn reads the known outcome of a cut call with effect $effect",
    async ({ effect, read }) => {
      const gate = createGate<string>();
      const model = scriptedModel([calling("slow"), "next"]);
      const { agent } = await open(defineAgent({ name: "worker", model, tools: [slowTool(gate, effect)] }));
      const turn = agent.executeTurn("go");
      await gate.reached();
      await turn.abort();
      await turn.result;
      gate.open("too late");
      expect((await agent.executeTurn("again").result).text).toBe("next");
      const seen = model.calls[1]?.messages.filter(({ role }) => role === "tool").map(({ content }) => content);
      expect(seen).toEqual([expect.stringMatching(read)]);
    },
  );

  it("a once tool that an abort cut gets an unknown outcome", async () => {
    const gate = createGate<string>();
    const model = scriptedModel([calling("slow")]);
    const { agent } = await open(defineAgent({ name: "worker", model, tools: [slowTool(gate, "once")] }));
    const turn = agent.executeTurn("go");
    await gate.reached();
    await turn.abort();
    await turn.result;
    expect((await toolTextsOf(agent))[0]).toContain("not known");
    const [settled] = await entriesOfType(stage().look(), "a", "tool.settled");
    expect(settled?.outcome).toBe("outcome_unknown");
  });

  it("repeated aborts count as one, and an abort after the end changes nothing", async () => {
    const gate = createGate<string>();
    const model = scriptedModel((_request, { index, signal }) => (index === 0 ? gate.pass(signal) : "fine"));
    const { agent } = await open(defineAgent({ name: "worker", model }));
    const turn = agent.executeTurn("go");
    await gate.reached();
    await Promise.all([turn.abort("one"), turn.abort("two"), agent.abort("three")]);
    await turn.result;
    await turn.abort("late");
    await agent.abort("late");
    const entries = await entriesOf(stage().look(), "a");
    expect(entries.filter(({ type }) => type === "turn.ended")).toHaveLength(1);
    expect(entries.filter(({ type }) => type === "stop.signalled")).toHaveLength(1);
    expect(await agent.executeTurn("again").result).toMatchObject({ status: "completed", text: "fine" });
  });

  it("an abort of an ended turn does not affect the open turn", async () => {
    const gate = createGate<string>();
    const model = scriptedModel((_request, { index, signal }) => (index === 0 ? "first" : gate.pass(signal)));
    const { agent } = await open(defineAgent({ name: "worker", model }));
    const first = agent.executeTurn("go");
    await first.result;
    const second = agent.executeTurn("again");
    await gate.reached();
    await first.abort();
    gate.open("second");
    expect(await second.result).toMatchObject({ status: "completed", text: "second" });
  });

  it("M5: an abort of the root ends the whole tree with a legal history on every level", async () => {
    const gate = createGate<string>();
    const { agent, runtime } = await open(tree(gate, 3));
    const turn = agent.executeTurn("go");
    await gate.reached(6);
    await agent.abort("all of you");
    const events = await eventsOfTurn(turn);
    expect(await turn.result).toMatchObject({ status: "stopped", stopReason: "user_requested" });
    await loopTurns(100);
    const records = await runtime.list();
    expect(records).toHaveLength(9);
    for (const { agentId, openTurnId, turnCount, abort } of records) {
      expect({ openTurnId, turnCount, abort }).toEqual({ openTurnId: null, turnCount: 1, abort: null });
      const entries = await entriesOf(stage().look(), agentId);
      expect(entries.filter(({ type }) => type === "turn.ended")).toMatchObject([{ outcome: "stopped" }]);
      expect(orderFault(await (await runtime.find(agentId)).getMessages())).toBeUndefined();
    }
    for (const account of await runtime.accounts("a")) {
      expect(account).toMatchObject({ activeCount: 0, reserved: { tokens: 0, costMicros: 0 } });
    }
    expect(events.at(-1)).toMatchObject({ type: "turn.stopped", agentId: "a" });
  });

  it("M5: an abort of a turn ends its awaited children and no other children", async () => {
    const gate = createGate<string>();
    const { agent, runtime } = await open(tree(gate, 1));
    const turn = agent.executeTurn("go");
    await gate.reached(2);
    await turn.abort();
    await turn.result;
    await loopTurns(100);
    expect((await runtime.list()).map(({ openTurnId }) => openTurnId)).toEqual([null, null, null, null, null]);
  });

  it("an abort of a child ends only that child, and its parent continues with the partial result", async () => {
    const gate = createGate<string>();
    const child = defineAgent({ name: "child", model: scriptedModel((_request, { signal }) => gate.pass(signal)) });
    const model = scriptedModel([calling({ name: "child", arguments: { input: "x" } }), "went on"]);
    const { agent, runtime } = await open(defineAgent({ name: "parent", model, tools: [subagent(child)] }));
    const turn = agent.executeTurn("go");
    await gate.reached();
    const record = (await runtime.list()).find(({ parentAgentId }) => parentAgentId === "a");
    await (await runtime.find(record?.agentId ?? "")).abort("you alone");
    expect(await turn.result).toMatchObject({ status: "completed", text: "went on" });
    expect((await toolTextsOf(agent))[0]).toContain("was stopped (user_requested)");
  });

  it("an abort of a paused tree leaves a child that has already ended free for its own turn", async () => {
    const gate = createGate<string>();
    const child = defineAgent({
      name: "child",
      model: scriptedModel((_request, { index, signal }) => (index === 0 ? gate.pass(signal) : "again")),
    });
    const model = scriptedModel([calling({ name: "child", arguments: { input: "x" } })]);
    const { agent, runtime } = await open(defineAgent({ name: "parent", model, tools: [subagent(child)] }));
    const turn = agent.executeTurn("go");
    await gate.reached();
    await agent.pause();
    const childEnded = nextEvent(runtime, ({ type, agentId }) => type === "turn.completed" && agentId !== "a");
    gate.open("over");
    const { agentId } = await childEnded;
    await loopTurns(aWhile);
    await agent.abort();
    await turn.result;
    await loopTurns(aWhile);
    const own = await runtime.find(agentId);
    await own.start();
    expect((await own.executeTurn("more").result).text).toBe("again");
  });

  it("an abort while paused ends the turn and its children without another step", async () => {
    const gate = createGate<string>();
    const { agent, runtime } = await open(tree(gate, 1));
    const turn = agent.executeTurn("go");
    await gate.reached(2);
    await agent.pause();
    await agent.abort("stop it");
    expect(await turn.result).toMatchObject({ status: "stopped", stopReason: "user_requested" });
    await loopTurns(100);
    const records = await runtime.list();
    expect(records.map(({ openTurnId, pause }) => [openTurnId, pause])).toEqual(records.map(() => [null, null]));
    expect(agent.state.status).toBe("ready");
  });
});
