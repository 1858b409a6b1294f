import { expect, it } from "vitest";
import { type AgentDefinition, askUser } from "../../src/index.ts";
import { leadOf, reportsIn, startedIds, worker } from "../support/background.ts";
import { entriesOfType, loopTurns, orderFault, toolTextsOf } from "../support/journal-probes.ts";
import { asks } from "../support/leads.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate, nextEvent } from "../support/turn-probes.ts";

describeRuntimes("subagents in the background", (stage) => {
  async function started(lead: AgentDefinition) {
    const runtime = await stage().open({ agents: [lead] });
    const agent = await runtime.agent("lead", { agentId: "desk" });
    await agent.start();
    return { runtime, agent };
  }

  it("the call returns the child's id at once; the child outlives the turn, and the next turn sees its result", async () => {
    const gate = createGate<string>();
    const lead = leadOf(worker(gate), ({ text, last, messages }) => {
      if (text === "go") return calling(asks("worker", "dig"));
      return last.role === "tool" ? "started it" : `seen: ${reportsIn(messages).join(" | ")}`;
    });
    const { runtime, agent } = await started(lead);
    const first = await agent.executeTurn("go").result;
    expect(first).toMatchObject({ status: "completed", text: "started it", steps: 2, toolCalls: 1 });
    const [childId = ""] = startedIds(await agent.getMessages());
    expect(await runtime.list()).toMatchObject([
      { agentId: "desk", openTurnId: null },
      { agentId: childId, openTurnId: `${childId}#1`, background: { onEnd: "keep" } },
    ]);
    await gate.reached();
    const told = nextEvent(runtime, ({ type }) => type === "subagent.ended");
    gate.open("gold");
    expect(await told).toMatchObject({
      agentId: "desk",
      childId,
      mode: "background",
      outcome: "completed",
      turnId: null,
    });
    expect(agent.state).toMatchObject({ status: "ready", turnCount: 1 });
    const second = await agent.executeTurn("and now?").result;
    expect(second.text).toMatch(/^seen: The subagent "worker" \(desk~\w+\).* has ended\. Its answer:\n\ngold$/s);
    const messages = await agent.getMessages();
    expect(orderFault(messages)).toBeUndefined();
    expect(messages.filter(({ origin }) => origin === "subagent:worker")).toHaveLength(1);
    expect(await entriesOfType(stage().look(), "desk", "child.reported")).toHaveLength(1);
  });

  it("a result that arrives while tools run is seen by the next model call, and never lies between a call and its results", async () => {
    const gate = createGate<string>();
    const hold = createGate<string>();
    const lead = leadOf(
      worker(gate),
      ({ text, messages, last }) => {
        if (text === "go") return calling(asks("worker", "dig"));
        if (startedIds(messages).length === 1 && messages.length === 3) return calling(asks("worker", "dig on"));
        return last.role === "tool" ? "too early" : `seen: ${reportsIn(messages).length}`;
      },
      { hooks: { beforeEachTool: async ({ call }) => void (call.callId.includes(":2:") && (await hold.pass())) } },
    );
    const { runtime, agent } = await started(lead);
    const turn = agent.executeTurn("go");
    await Promise.all([gate.reached(), hold.reached()]);
    const told = nextEvent(runtime, ({ type }) => type === "subagent.ended");
    gate.open("gold");
    await told;
    hold.open("go on");
    expect(await turn.result).toMatchObject({ status: "completed", text: "seen: 1" });
    const messages = await agent.getMessages();
    expect(orderFault(messages)).toBeUndefined();
  });

  it("onEnd wake: the agent starts a turn by itself, one for results that arrive together", async () => {
    const gate = createGate<string>();
    const lead = leadOf(
      worker(gate),
      ({ text, last, messages }) => {
        if (text === "go") return calling(asks("worker", "a"), asks("worker", "b"));
        return last.role === "tool" ? "started" : `seen ${reportsIn(messages).length}`;
      },
      { onEnd: "wake" },
    );
    const { runtime, agent } = await started(lead);
    await agent.executeTurn("go").result;
    await gate.reached(2);
    const ends: Promise<unknown>[] = [1, 2].map((times) => {
      let left = times;
      return nextEvent(runtime, ({ type }) => type === "subagent.ended" && --left === 0);
    });
    gate.open("gold");
    await Promise.all(ends);
    for (let tries = 0; tries < 200 && (agent.state.openTurnId !== null || agent.state.turnCount < 2); tries += 1) {
      await loopTurns(5);
    }
    const woken = await agent.turn("desk#2").result;
    expect(woken).toMatchObject({ status: "completed" });
    const started2 = await entriesOfType(stage().look(), "desk", "turn.started");
    expect(started2.slice(1).every(({ wokenBy }) => wokenBy !== undefined)).toBe(true);
    expect(started2.length).toBeLessThanOrEqual(3);
    const messages = await agent.getMessages();
    expect(reportsIn(messages)).toHaveLength(2);
    expect(await toolTextsOf(agent)).toHaveLength(2);
  });

  it("a turn that waits for a person settles although its background child works", async () => {
    const gate = createGate<string>();
    const lead = leadOf(
      worker(gate),
      ({ text, last }) => {
        if (text === "go") return calling(asks("worker", "dig"));
        return last.role === "tool" && text.startsWith("{")
          ? calling({ name: "ask_user", arguments: { question: "?" } })
          : text;
      },
      { tools: [askUser()] },
    );
    const { runtime, agent } = await started(lead);
    const turn = agent.executeTurn("go");
    await gate.reached();
    const rest = await turn.settled;
    expect(rest).toMatchObject({ status: "waiting", reason: "request" });
    const [request] = await agent.requests();
    await runtime.decide(request?.requestId ?? "", { verdict: "answered", result: "yes" });
    expect(await turn.result).toMatchObject({ status: "completed", text: "yes" });
    gate.open("late");
  });
});
