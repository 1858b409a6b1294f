import { expect, it } from "vitest";
import { z } from "zod";
import {
  type Agent,
  defineAgent,
  defineTool,
  InvalidInputError,
  type Runtime,
  type RunContext,
} from "../../src/index.ts";
import { type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { entriesOfType, toolTexts, toolTextsOf } from "../support/journal-probes.ts";
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

describeRuntimes("a running tool", (stage) => {
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

  it("H6: gets its run context, which throws if it is used after the call", async () => {
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
          ownerId: null,
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

  it("sends progress to readers of the stream, and none of it is stored", async () => {
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

  it("S12: a large output becomes an artifact, and the model gets its head and tail and the artifact's id", async () => {
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

  it("can save artifacts, which are stored before saveArtifact() resolves", async () => {
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

  it("runs no more calls at a time than its concurrency, across all agents of the process", async () => {
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
});
