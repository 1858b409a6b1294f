import { expect, it } from "vitest";
import type { AgentDefinition } from "../../src/index.ts";
import { leadOf, reportsIn, startedIds, worker } from "../support/background.ts";
import { entriesOfType, loopTurns, orderFault } from "../support/journal-probes.ts";
import { asks } from "../support/leads.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate, nextEvent } from "../support/turn-probes.ts";

describeRuntimes("background children, aborts and pauses", (stage) => {
  async function started(lead: AgentDefinition) {
    const runtime = await stage().open({ agents: [lead] });
    const agent = await runtime.agent("lead", { agentId: "desk" });
    await agent.start();
    return { runtime, agent };
  }

  it("M5: aborting the turn does not affect them; aborting the agent ends them, and their ends do not wake it", async () => {
    const gate = createGate<string>();
    const hold = createGate<string>();
    const lead = leadOf(
      worker(gate),
      async ({ text, last, messages }) => {
        if (text === "go") return calling(asks("worker", "dig"));
        return last.role === "tool" && startedIds(messages).length === 1 ? await hold.pass() : "woken";
      },
      { onEnd: "wake" },
    );
    const { runtime, agent } = await started(lead);
    const turn = agent.executeTurn("go");
    await Promise.all([gate.reached(), hold.reached()]);
    await turn.abort("enough");
    expect(await turn.result).toMatchObject({ status: "stopped", stopReason: "user_requested" });
    const [childId = ""] = startedIds(await agent.getMessages());
    const child = await runtime.find(childId);
    const [record] = (await runtime.list()).filter(({ agentId }) => agentId === childId);
    expect(record).toMatchObject({ openTurnId: `${childId}#1`, abort: null });
    const told = nextEvent(runtime, ({ type }) => type === "subagent.ended");
    await agent.abort("all of it");
    expect(await child.turn(`${childId}#1`).result).toMatchObject({ status: "stopped", stopReason: "user_requested" });
    await told;
    expect(agent.state).toMatchObject({ status: "ready", openTurnId: null, turnCount: 1 });
    expect(reportsIn(await agent.getMessages())).toHaveLength(1);
    for (const account of await runtime.accounts("desk")) {
      expect(account).toMatchObject({ reserved: { tokens: 0 }, activeCount: 0 });
    }
    expect(orderFault(await agent.getMessages())).toBeUndefined();
  });

  it("a pause of the agent stops them, and a report that wakes waits for the end of the pause", async () => {
    const gate = createGate<string>();
    const lead = leadOf(
      worker(gate),
      ({ text, last, messages }) => {
        if (text === "go") return calling(asks("worker", "dig"));
        return last.role === "tool" ? "started" : `seen ${reportsIn(messages).length}`;
      },
      { onEnd: "wake" },
    );
    const { runtime, agent } = await started(lead);
    await agent.executeTurn("go").result;
    await gate.reached();
    await agent.pause();
    const [childId = ""] = startedIds(await agent.getMessages());
    gate.open("gold");
    // The call in flight finishes, its result is kept, and the child's turn ends with it.
    await nextEvent(runtime, ({ type }) => type === "subagent.ended");
    expect(agent.state).toMatchObject({ status: "paused", turnCount: 1 });
    expect(await entriesOfType(stage().look(), "desk", "turn.started")).toHaveLength(1);
    await agent.resume();
    expect(await agent.turn("desk#2").result).toMatchObject({ status: "completed", text: "seen 1" });
    expect((await runtime.find(childId)).state.status).not.toBe("busy");
  });

  it("an agent that was shut down gets the report after its next start, and only then wakes", async () => {
    const gate = createGate<string>();
    const lead = leadOf(
      worker(gate),
      ({ text, last, messages }) => {
        if (text === "go") return calling(asks("worker", "dig"));
        return last.role === "tool" ? "started" : `seen ${reportsIn(messages).length}`;
      },
      { onEnd: "wake" },
    );
    const { runtime, agent } = await started(lead);
    await agent.executeTurn("go").result;
    const [childId = ""] = startedIds(await agent.getMessages());
    await gate.reached();
    await agent.shutdown();
    gate.open("gold");
    await loopTurns(30);
    expect((await runtime.find(childId)).state).toMatchObject({ turnCount: 0, openTurnId: `${childId}#1` });
    expect(await entriesOfType(stage().look(), "desk", "child.reported")).toHaveLength(0);
    expect(agent.state.status).toBe("shutdown");
    await agent.start();
    await (await runtime.find(childId)).turn(`${childId}#1`).result;
    await loopTurns(30);
    expect(await agent.turn("desk#2").result).toMatchObject({ status: "completed", text: "seen 1" });
  });

  it("an aborted turn starts no other turn for a report it had not seen, and the next turn sees it", async () => {
    const gate = createGate<string>();
    const hold = createGate<string>();
    const lead = leadOf(
      worker(gate),
      async ({ text, last, messages }) => {
        if (text === "go") return calling(asks("worker", "dig"));
        if (last.role === "tool") return await hold.pass();
        return `seen ${reportsIn(messages).length}`;
      },
      { onEnd: "wake" },
    );
    const { runtime, agent } = await started(lead);
    const turn = agent.executeTurn("go");
    await Promise.all([gate.reached(), hold.reached()]);
    const told = nextEvent(runtime, ({ type }) => type === "subagent.ended");
    gate.open("gold");
    await told;
    await turn.abort("enough");
    await turn.result;
    expect(agent.state).toMatchObject({ openTurnId: null, turnCount: 1 });
    expect(await agent.executeTurn("and?").result).toMatchObject({ text: "seen 1" });
    expect(await entriesOfType(stage().look(), "desk", "turn.started")).toHaveLength(2);
  });

  it("a report that the final answer had not seen starts another turn", async () => {
    const gate = createGate<string>();
    const hold = createGate<string>();
    const lead = leadOf(
      worker(gate),
      async ({ text, last, messages }) => {
        if (text === "go") return calling(asks("worker", "dig"));
        if (last.role === "tool") return await hold.pass();
        return `seen ${reportsIn(messages).length}`;
      },
      { onEnd: "wake" },
    );
    const { runtime, agent } = await started(lead);
    const turn = agent.executeTurn("go");
    await Promise.all([gate.reached(), hold.reached()]);
    const told = nextEvent(runtime, ({ type }) => type === "subagent.ended");
    gate.open("gold");
    await told;
    hold.open("final");
    expect(await turn.result).toMatchObject({ text: "final" });
    expect(await agent.turn("desk#2").result).toMatchObject({ text: "seen 1", status: "completed" });
    expect(await entriesOfType(stage().look(), "desk", "turn.started")).toHaveLength(2);
  });
});
