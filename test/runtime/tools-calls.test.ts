import { expect, it } from "vitest";
import { z } from "zod";
import { type Agent, AgentStopError, defineAgent, defineTool, type Runtime } from "../../src/index.ts";
import { type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { orderFault, toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate } from "../support/turn-probes.ts";

const nothing = z.object({});
const echo = defineTool({
  name: "echo",
  description: "Says it again.",
  parameters: z.object({ text: z.string() }),
  effect: "none",
  execute: ({ text }) => text,
});

describeRuntimes("tool calls and their results", (stage) => {
  async function started(
    script: ModelScript,
    tools: Parameters<typeof defineAgent>[0]["tools"],
  ): Promise<{ runtime: Runtime; agent: Agent; model: ReturnType<typeof scriptedModel> }> {
    const model = scriptedModel(script);
    const runtime = await stage().open({ agents: [defineAgent({ name: "worker", model, tools })] });
    const agent = await runtime.agent("worker", { agentId: "worker-1", sessionId: "desk" });
    await agent.start();
    return { runtime, agent, model };
  }

  it.each([
    { title: "wrong", text: '{"text":7}', told: /text/, code: "invalid" },
    { title: "truncated", text: '{"text":"he', told: /JSON/, code: "invalid" },
    { title: "poisoned", text: '{"text":"a","__proto__":{"isAdmin":true}}', told: /__proto__/, code: "invalid" },
  ])(
    "F24: a call with $title arguments never runs, and the model gets an error and can correct them",
    async ({ text, told, code }) => {
      const script = [
        { toolCalls: [{ name: "echo", arguments: text }] },
        calling({ name: "echo", arguments: { text: "mended" } }),
        "the end",
      ];
      const { agent, model } = await started(script, [echo]);
      const result = await agent.executeTurn("go").result;
      expect(result).toMatchObject({ status: "completed", text: "the end", toolCalls: 1 });
      expect(result.errors).toMatchObject([{ code, callId: "worker-1#1:1:0" }]);
      const [first, second] = await toolTextsOf(agent);
      expect(first).toMatch(told);
      expect(second).toBe("mended");
      for (const { messages } of model.calls) expect(orderFault(messages)).toBeUndefined();
    },
  );

  it("an unknown tool gets an error with the closest names", async () => {
    const { agent } = await started([calling("ehco"), "the end"], [echo]);
    const result = await agent.executeTurn("go").result;
    expect(result.errors).toMatchObject([{ code: "not_found" }]);
    expect(await toolTextsOf(agent)).toEqual([
      'There is no tool "ehco". The closest names are: echo. Use one of the tools you were given.',
    ]);
    const trace = await agent.getTrace();
    expect(trace.find(({ type }) => type === "tool_execution")).toMatchObject({ status: "not_found", name: "ehco" });
  });

  it("F23: results of parallel calls are in a legal order, whichever ends first", async () => {
    const gates = [createGate<string>(), createGate<string>(), createGate<string>()];
    const wait = defineTool({
      name: "wait",
      description: "Waits.",
      parameters: z.object({ number: z.number() }),
      effect: "none",
      execute: ({ number }) => gates[number]?.pass(),
    });
    const calls = [0, 1, 2].map((number) => ({ name: "wait", arguments: { number } }));
    const { agent, model } = await started([calling(...calls), "the end"], [wait]);
    const { result } = agent.executeTurn("go");
    for (const gate of gates) await gate.reached();
    for (const number of [2, 0, 1]) {
      gates[number]?.open(`result ${number}`);
      await (gates[number]?.pass() ?? Promise.resolve());
    }
    expect((await result).toolCalls).toBe(3);
    const last = model.calls[1]?.messages ?? [];
    expect(orderFault(last)).toBeUndefined();
    const answers = new Map(last.flatMap((one) => (one.role === "tool" ? [[one.callId, one.content] as const] : [])));
    expect([0, 1, 2].map((index) => answers.get(`worker-1#1:1:${index}`))).toEqual([
      "result 0",
      "result 1",
      "result 2",
    ]);
  });

  it("S11: AgentStopError of a tool ends the turn as stop_requested, after the round", async () => {
    const halt = defineTool({
      name: "halt",
      description: "Halts.",
      parameters: nothing,
      execute: () => {
        throw new AgentStopError("enough is known");
      },
    });
    const { agent, model } = await started(
      [calling("halt", { name: "echo", arguments: { text: "still told" } })],
      [halt, echo],
    );
    const result = await agent.executeTurn("go").result;
    expect(result).toMatchObject({ status: "stopped", stopReason: "stop_requested", toolCalls: 2 });
    expect(result.signal).toMatchObject({ message: "enough is known", source: "tool:halt" });
    expect((await toolTextsOf(agent)).toSorted()).toEqual(["The tool stopped the run: enough is known", "still told"]);
    expect(model.calls).toHaveLength(1);
    expect(agent.state.status).toBe("ready");
  });

  it("H10: an abort fires the signal of a running tool, and its late result changes nothing", async () => {
    const gate = createGate<string>();
    let aborted = false;
    const slow = defineTool({
      name: "slow",
      description: "Is slow.",
      parameters: nothing,
      effect: "none",
      execute(_args, { signal }) {
        signal.addEventListener("abort", () => (aborted = true), { once: true });
        return gate.pass();
      },
    });
    const { agent, model } = await started([calling("slow"), "never"], [slow]);
    const turn = agent.executeTurn("go");
    await gate.reached();
    await turn.abort("changed my mind");
    const result = await turn.result;
    gate.open("too late");
    expect(aborted).toBe(true);
    expect(result).toMatchObject({ status: "stopped", stopReason: "user_requested" });
    expect(await toolTextsOf(agent)).toEqual(["Interrupted by user"]);
    expect(model.calls).toHaveLength(1);
    expect(orderFault(await agent.getMessages())).toBeUndefined();
  });
});
