import { expect, it } from "vitest";
import { z } from "zod";
import {
  type AgentDefinition,
  createAgentLoop,
  defineAgent,
  defineTool,
  subagent,
  UnsupportedError,
  textOf,
} from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { leadOf, reportsIn, startedIds, worker } from "../support/background.ts";
import { elapse, entriesOfType, orderFault, toolTextsOf } from "../support/journal-probes.ts";
import { asks } from "../support/leads.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate, nextEvent } from "../support/turn-probes.ts";

describeRuntimes("the tools for background subagents", (stage) => {
  async function started(lead: AgentDefinition) {
    const runtime = await stage().open({ agents: [lead] });
    const agent = await runtime.agent("lead", { agentId: "desk" });
    await agent.start();
    return { runtime, agent };
  }

  it("subagent_status reports all or one, an unknown id lists the known ones, and the tools are added automatically", async () => {
    const gate = createGate<string>();
    const seen: string[] = [];
    const lead = leadOf(worker(gate), async ({ text, last, messages }) => {
      if (text === "go") return calling(asks("worker", "dig"));
      const [childId = ""] = startedIds(messages);
      if (last.role === "tool" && text.startsWith('{"agentId"') && !text.includes("state")) {
        await gate.reached();
        return calling("subagent_status", { name: "subagent_status", arguments: { agentId: "desk~nobody" } });
      }
      seen.push(...messages.filter(({ role }) => role === "tool").map(({ content }) => textOf(content)));
      return childId;
    });
    expect(lead.grantedTools).toEqual([
      { name: "worker", kind: "subagent", effect: "once" },
      { name: "subagent_status", kind: "control", effect: "none" },
      { name: "subagent_wait", kind: "control", effect: "none" },
      { name: "subagent_cancel", kind: "control", effect: "none" },
    ]);
    const { agent } = await started(lead);
    const { text: childId, toolCalls } = await agent.executeTurn("go").result;
    expect(JSON.parse(seen[1] ?? "")).toEqual({
      agentId: childId,
      name: "worker",
      state: "running",
      step: 1,
      tokens: 0,
      elapsedSeconds: 0,
    });
    expect(seen[2]).toBe(
      `You have no subagent desk~nobody. Those that you have started in the background are: ${childId} (worker).`,
    );
    expect(toolCalls).toBe(3);
    const trace = await agent.getTrace();
    expect(
      trace.flatMap((entry) => (entry.type === "tool_execution" ? [`${entry.name} ${entry.status}`] : [])),
    ).toEqual(["worker success", "subagent_status success", "subagent_status error"]);
    gate.open("late");
  });

  it("subagent_wait for the first, then for all: each answer is reported once, and the turn is inactive meanwhile", async () => {
    const gates = new Map(["a", "b"].map((name) => [name, createGate<string>()]));
    const child = defineAgent({
      name: "worker",
      model: scriptedModel(async ({ messages }, { signal }) => {
        const gate = gates.get(textOf(messages.at(-1)?.content ?? ""));
        return gate ? await gate.pass(signal) : "nothing";
      }),
    });
    const lead = leadOf(child, ({ text, messages }) => {
      if (text === "go") return calling(asks("worker", "a"), asks("worker", "b"));
      const ids = startedIds(messages);
      if (messages.at(-1)?.role !== "tool") return "reported twice";
      if (text.includes("first gold") && !text.includes("second gold")) {
        return calling({ name: "subagent_wait", arguments: { agentIds: ids } });
      }
      return text.includes("second gold") ? text : calling("subagent_wait");
    });
    const { runtime, agent } = await started(lead);
    const turn = agent.executeTurn("go");
    await Promise.all([...gates.values()].map((gate) => gate.reached()));
    const waiting = async (count: number): Promise<void> => {
      for (;;) {
        if ((await entriesOfType(runtime.stores, "desk", "call.waiting")).length >= count) return;
        await new Promise<void>((resolve) => setImmediate(resolve));
      }
    };
    await waiting(1);
    expect((await runtime.accounts("desk")).find(({ id }) => id === "turn:desk#1")?.isActive).toBe(false);
    gates.get("a")?.open("first gold");
    await waiting(2);
    gates.get("b")?.open("second gold");
    const { text } = await turn.result;
    expect(text).toMatch(/first gold/);
    expect(text).toMatch(/second gold/);
    const messages = await agent.getMessages();
    expect(reportsIn(messages)).toEqual([]);
    expect(orderFault(messages)).toBeUndefined();
    const waits = (await toolTextsOf(agent)).slice(2);
    expect(waits).toHaveLength(2);
    expect(waits[0]).toMatch(/has ended\. Its answer:\n\nfirst gold\n\nStill at work: desk~/);
  });

  it("a wait that times out returns without an error, and a later result is reported as usual", async () => {
    const gate = createGate<string>();
    const lead = leadOf(worker(gate), ({ text, last, messages }) => {
      if (text === "go") return calling(asks("worker", "dig"));
      if (text.startsWith('{"agentId"')) return calling({ name: "subagent_wait", arguments: { timeoutSeconds: 30 } });
      return last.role === "tool" ? text : `seen ${reportsIn(messages).length}`;
    });
    const { runtime, agent } = await started(lead);
    const { text } = await elapse(stage().clock, agent.executeTurn("go").result, 500);
    expect(text).toMatch(/^The time is over\. Still at work: desk~\w+\.$/);
    expect((await toolTextsOf(agent)).length).toBe(2);
    const told = nextEvent(runtime, ({ type }) => type === "subagent.ended");
    gate.open("gold");
    await told;
    expect((await agent.executeTurn("and?").result).text).toBe("seen 1");
  });

  it("a wait survives the death of its process with its timeout", async () => {
    const gate = createGate<string>();
    const leads = (text: string) =>
      leadOf(worker(gate), (seen) => {
        if (seen.text === "go") return calling(asks("worker", "dig"));
        if (seen.text.startsWith('{"agentId"'))
          return calling({ name: "subagent_wait", arguments: { timeoutSeconds: 60 } });
        return `${text}: ${seen.text}`;
      });
    const doomed = await stage().openProcess({ agents: [leads("first")] });
    const before = await doomed.runtime.agent("lead", { agentId: "desk" });
    await before.start();
    before.executeTurn("go");
    const waits = nextEvent(doomed.runtime, (event) => event.type === "tool.started" && event.name === "subagent_wait");
    await Promise.all([gate.reached(), waits]);
    for (;;) {
      if ((await entriesOfType(stage().look(), "desk", "call.waiting")).length > 0) break;
      await new Promise<void>((resolve) => setImmediate(resolve));
    }
    doomed.kill();
    stage().expireLeases();
    const survivor = await stage().open({ agents: [leads("second")] });
    await survivor.recover();
    const agent = await survivor.find("desk");
    const { text } = await elapse(stage().clock, agent.turn("desk#1").result, 1_000);
    expect(text).toMatch(/^second: The time is over\./);
    gate.open("gold");
  });

  it("subagent_cancel ends a subagent and everything below it, and can be repeated", async () => {
    const gate = createGate<string>();
    const leaf = worker(gate);
    const middle = defineAgent({
      name: "middle",
      model: scriptedModel(({ messages }) =>
        messages.at(-1)?.role === "user" ? calling(asks("worker", "deep")) : "middle's answer",
      ),
      tools: [subagent(leaf)],
    });
    const model = scriptedModel(async ({ messages }) => {
      const ids = startedIds(messages);
      const last = textOf(messages.at(-1)?.content ?? "");
      if (last === "go") return calling(asks("middle", "dig"));
      const cancel = { name: "subagent_cancel", arguments: { agentId: ids[0] ?? "", reason: "not needed" } };
      if (last.startsWith('{"agentId"')) {
        await gate.reached();
        return calling(cancel);
      }
      if (last.includes("is being ended")) return calling({ name: "subagent_wait", arguments: { agentIds: ids } });
      return last.includes("was stopped (user_requested)") ? calling(cancel) : last;
    });
    const lead = defineAgent({ name: "lead", model, tools: [subagent(middle, { mode: "background", onEnd: "wake" })] });
    const { runtime, agent } = await started(lead);
    const { text } = await agent.executeTurn("go").result;
    expect(text).toMatch(/had ended already; nothing was left to cancel\.$/);
    for (const record of await runtime.list()) expect(record.openTurnId).toBeNull();
    expect(agent.state.turnCount).toBe(1);
  });

  it("an aborted turn gives a waiting call one result, and the subagent keeps working", async () => {
    const gate = createGate<string>();
    const lead = leadOf(worker(gate), ({ text, last, messages }) => {
      if (text === "go") return calling(asks("worker", "dig"));
      if (last.role === "tool") return calling({ name: "subagent_wait", arguments: { timeoutSeconds: 600 } });
      return `seen ${reportsIn(messages).length}`;
    });
    const { runtime, agent } = await started(lead);
    const turn = agent.executeTurn("go");
    await nextEvent(runtime, (event) => event.type === "tool.started" && event.name === "subagent_wait");
    await gate.reached();
    await turn.abort("enough");
    expect(await turn.result).toMatchObject({ status: "stopped" });
    expect((await toolTextsOf(agent)).at(-1)).toBe("Interrupted by user");
    expect(orderFault(await agent.getMessages())).toBeUndefined();
    expect(await runtime.stores.dueTimers(Number.MAX_SAFE_INTEGER, 10)).toEqual([]);
    const told = nextEvent(runtime, ({ type }) => type === "subagent.ended");
    gate.open("gold");
    await told;
    expect((await agent.executeTurn("and?").result).text).toBe("seen 1");
  });

  it("maxConcurrent counts children of earlier turns, and refuses one more at once", async () => {
    const gate = createGate<string>();
    const model = scriptedModel(({ messages }) => {
      const last = messages.at(-1);
      return last?.role === "tool" ? textOf(last.content) : calling(asks("worker", "dig"), asks("worker", "dig on"));
    });
    const tools = [subagent(worker(gate), { mode: "background", policy: { maxConcurrent: 2 } })];
    const { agent } = await started(defineAgent({ name: "lead", model, tools }));
    await agent.executeTurn("go").result;
    expect((await agent.executeTurn("again").result).text).toBe(
      '2 subagents "worker" work in the background already; the policy allows 2 at a time. Wait for one with subagent_wait, or end one with subagent_cancel.',
    );
    gate.open("done");
  });

  it("autoSave: false is refused before anything is created, even if the subagent is further down", async () => {
    const middle = leadOf(worker(), () => "");
    const top = defineAgent({ name: "top", model: scriptedModel("never"), tools: [subagent(middle)] });
    const runtime = await stage().open({ agents: [top] });
    await expect(runtime.agent("top", { agentId: "desk", autoSave: false })).rejects.toThrow(
      /agent "lead" has the subagent "worker" with mode "background".*autoSave: false stores nothing.*Use mode "await"/,
    );
    expect(await runtime.list()).toEqual([]);
  });
});

it("wrong options are refused with an error that suggests the right ones", async () => {
  const child = worker();
  expect(() => subagent(child, { onEnd: "wake" })).toThrow(
    /onEnd applies only to background children; add mode: "background"/,
  );
  expect(() => subagent(child, { mode: "later" as "await" })).toThrow(
    /mode is the text "later"; expected "await" or "background"/,
  );
  expect(() => subagent(child, { mode: "background", onEnd: "x" as "keep" })).toThrow(
    /onEnd is the text "x"; expected "keep" or "wake"/,
  );
  const mine = defineTool({ name: "subagent_wait", description: "Mine.", parameters: z.object({}), execute: () => "" });
  expect(() => leadOf(child, () => "", { tools: [mine] })).toThrow(
    /"subagent_wait", which is the name of a tool that the runtime gives this agent for its subagents in the background/,
  );
  expect(() => createAgentLoop(leadOf(child, () => ""))).toThrow(UnsupportedError);
});
