import { expect, it } from "vitest";
import { z } from "zod";
import {
  type Agent,
  AgentStopError,
  defineAgent,
  defineTool,
  InvalidInputError,
  type Runtime,
  type RunContext,
} from "../../src/index.ts";
import { type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { entriesOfType, orderFault, toolTexts, toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate, eventsOfTurn } from "../support/turn-probes.ts";

const nothing = z.object({});
const echo = defineTool({
  name: "echo",
  description: "Says it again.",
  parameters: z.object({ text: z.string() }),
  effect: "none",
  execute: ({ text }) => text,
});

describeRuntimes("tools at work", (stage) => {
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

  it("H6: a tool sees its run, and what it kept of it is dead after the call", async () => {
    let kept: RunContext | undefined;
    const seen: unknown[] = [];
    const look = defineTool({
      name: "look",
      description: "Looks.",
      parameters: nothing,
      effect: "none",
      execute(_args, run) {
        kept = run;
        const { agent, turnId, step, callId, attempt, prompt, previousTools, auth, idempotencyKey } = run;
        seen.push({ agent, turnId, step, callId, attempt, prompt, previousTools, idempotencyKey });
        seen.push(
          [auth?.actorId, auth?.credentials],
          run.trace.map(({ type }) => type),
        );
        return "seen";
      },
    });
    const script = [calling({ name: "echo", arguments: { text: "first" } }), calling("look"), "the end"];
    const { agent } = await started(script, [echo, look]);
    const auth = { actorId: "mia", credentials: { token: "t-1" } };
    await agent.executeTurn("look around", { auth }).result;
    expect(seen).toEqual([
      {
        agent: {
          agentId: "worker-1",
          name: "worker",
          parentAgentId: null,
          rootAgentId: "worker-1",
          depth: 0,
          sessionId: "desk",
          tenant: "default",
        },
        turnId: "worker-1#1",
        step: 2,
        callId: "worker-1#1:2:0",
        attempt: 1,
        prompt: "look around",
        previousTools: [{ callId: "worker-1#1:1:0", name: "echo", outcome: "success" }],
        idempotencyKey: "worker-1#1:2:0",
      },
      ["mia", { token: "t-1" }],
      ["user_input", "llm_call", "tool_execution", "llm_call"],
    ]);
    expect(() => kept?.prompt).toThrow(InvalidInputError);
    expect(() => kept?.progress("late")).toThrow(InvalidInputError);
  });

  it("progress reaches who watches, and nothing of it is stored", async () => {
    const dig = defineTool({
      name: "dig",
      description: "Digs.",
      parameters: nothing,
      effect: "none",
      execute(_args, run) {
        run.progress({ metres: 1 });
        run.progress({ metres: 2 });
        return "gold";
      },
    });
    const { runtime, agent } = await started([calling("dig"), "the end"], [dig]);
    const turn = agent.executeTurn("dig");
    const events = await eventsOfTurn(turn);
    const progress = events.filter((event) => event.type === "tool.progress");
    expect(progress.map(({ update, cursor, callId }) => [update, cursor, callId])).toEqual([
      [{ metres: 1 }, null, "worker-1#1:1:0"],
      [{ metres: 2 }, null, "worker-1#1:1:0"],
    ]);
    const stored = [];
    for await (const event of runtime.follow("worker-1")) {
      stored.push(event.type);
      if (event.type === "turn.completed") break;
    }
    expect(stored).toContain("tool.completed");
    expect(stored).not.toContain("tool.progress");
  });

  it("S12: a large output becomes an artifact, and the model gets head and tail and is told", async () => {
    const whole = `begin ${"x".repeat(5_000)} end`;
    const dump = defineTool({
      name: "dump",
      description: "Dumps.",
      parameters: nothing,
      effect: "none",
      maxOutputCharacters: 600,
      execute: () => whole,
    });
    const { agent, model } = await started([calling("dump"), "the end"], [dump]);
    const events = await eventsOfTurn(agent.executeTurn("go"));
    const [artifact] = await agent.getArtifacts();
    expect(artifact).toMatchObject({ name: "dump output", contentType: "text/plain", size: whole.length });
    expect((await agent.getArtifact(artifact?.artifactId ?? ""))?.content).toBe(whole);
    const [told = ""] = toolTexts(model.calls[1]?.messages ?? []);
    expect(told.length).toBeLessThanOrEqual(600);
    expect(told).toMatch(/^begin x+[^]*x+ end$/);
    expect(told).toContain(`artifact ${artifact?.artifactId}`);
    expect(events.map(({ type }) => type)).toContain("artifact.saved");
  });

  it("a tool saves artifacts of its own, which are there when it goes on", async () => {
    let stored: string | undefined;
    const draw = defineTool({
      name: "draw",
      description: "Draws.",
      parameters: nothing,
      effect: "none",
      async execute(_args, run) {
        const saved = await run.saveArtifact({ name: "plan", contentType: "text/markdown", content: "# Plan" });
        const key = { tenant: "default", agentId: "worker-1" };
        stored = (await stage().look().artifact(key, saved.artifactId))?.content;
        return saved.artifactId;
      },
    });
    const { agent } = await started([calling("draw"), "the end"], [draw]);
    await agent.executeTurn("go").result;
    expect(stored).toBe("# Plan");
    const [artifact] = await agent.getArtifacts();
    expect(await toolTextsOf(agent)).toEqual([artifact?.artifactId]);
  });

  it.each([
    { title: "wrong", text: '{"text":7}', told: /text/, code: "invalid" },
    { title: "truncated", text: '{"text":"he', told: /JSON/, code: "invalid" },
    { title: "poisoned", text: '{"text":"a","__proto__":{"isAdmin":true}}', told: /__proto__/, code: "invalid" },
  ])("F24: $title arguments never run, the model is told, and may mend them", async ({ text, told, code }) => {
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
  });

  it("an unknown tool is answered with the names that come near", async () => {
    const { agent } = await started([calling("ehco"), "the end"], [echo]);
    const result = await agent.executeTurn("go").result;
    expect(result.errors).toMatchObject([{ code: "not_found" }]);
    expect(await toolTextsOf(agent)).toEqual([
      'There is no tool "ehco". The closest names are: echo. Use one of the tools you were given.',
    ]);
    const trace = await agent.getTrace();
    expect(trace.find(({ type }) => type === "tool_execution")).toMatchObject({ status: "not_found", name: "ehco" });
  });

  it("F23: results of parallel calls stand in a legal order, whichever comes first", async () => {
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

  it("no more calls of a tool run at a time than it allows, over all agents of the process", async () => {
    const gate = createGate();
    let running = 0;
    let most = 0;
    const narrow = defineTool({
      name: "narrow",
      description: "One at a time.",
      parameters: nothing,
      effect: "none",
      concurrency: 2,
      async execute() {
        running += 1;
        most = Math.max(most, running);
        await gate.pass();
        running -= 1;
      },
    });
    const model = scriptedModel(({ messages }) =>
      messages.at(-1)?.role === "tool" ? "the end" : calling("narrow", "narrow", "narrow"),
    );
    const runtime = await stage().open({ agents: [defineAgent({ name: "worker", model, tools: [narrow] })] });
    const agents = [await runtime.agent("worker", { agentId: "a" }), await runtime.agent("worker", { agentId: "b" })];
    for (const agent of agents) await agent.start();
    const results = agents.map((agent) => agent.executeTurn("go").result);
    await gate.reached(2);
    gate.open();
    for (const result of await Promise.all(results))
      expect(result).toMatchObject({ status: "completed", toolCalls: 3 });
    expect(most).toBe(2);
    const intents = await entriesOfType(stage().look(), "a", "tool.started");
    expect(intents).toHaveLength(3);
  });

  it("H10: an abort reaches the signal of a running tool, and its late result changes nothing", async () => {
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
