import { expect, it } from "vitest";
import { z } from "zod";
import {
  type Agent,
  type AgentOptions,
  type Budget,
  defineAgent,
  defineTool,
  ModelError,
  type Runtime,
  subagent,
  textOf,
} from "../../src/index.ts";
import { type ModelScript, type ScriptedModel, scriptedModel } from "../../src/testing/index.ts";
import { entriesOfType, orderFault, toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, eventsOfTurn } from "../support/turn-probes.ts";

const price = { inputPerMillion: 1, outputPerMillion: 10 };
const step = (ran: string[] = []) =>
  defineTool({
    name: "step",
    description: "Steps on.",
    parameters: z.object({}),
    effect: "none",
    execute: () => {
      ran.push("step");
      return "on";
    },
  });
const usage = { inputTokens: 100, outputTokens: 50 };
/** Calls the tool while tools are allowed, and answers when they are not. */
const diligent: ModelScript = ({ toolChoice }) =>
  toolChoice === "none" ? { text: "what I have", usage } : { toolCalls: [{ name: "step" }], usage };
const stubborn: ModelScript = () => ({ text: "still at it", toolCalls: [{ name: "step" }], usage });

describeRuntimes("a budget with finalAnswer", (stage) => {
  async function started(
    script: ModelScript,
    options: Partial<AgentOptions>,
    life?: Budget,
  ): Promise<{ runtime: Runtime; agent: Agent; model: ScriptedModel }> {
    const model = scriptedModel(script);
    const definition = defineAgent({ name: "worker", tools: [step()], ...options, model });
    const runtime = await stage().open({ agents: [definition] });
    const agent = await runtime.agent("worker", { agentId: "worker-1", ...(life ? { budget: life } : {}) });
    await agent.start();
    return { runtime, agent, model };
  }

  it.each([
    { budget: { maxSteps: 3 }, limit: "maxSteps", calls: 3 },
    { budget: { maxTreeSteps: 2 }, limit: "maxTreeSteps", calls: 2 },
    { budget: { maxTokens: 1_300 }, limit: "maxTokens", calls: 4 },
    { budget: { maxCost: 0.01 }, limit: "maxCostMicros", calls: 8 },
  ])(
    "$budget: the last permitted call allows no tools, and the turn is completed",
    async ({ budget, limit, calls }) => {
      const { agent, model } = await started(diligent, {
        price,
        maxOutputTokens: 300,
        budget: { maxSteps: 50, ...budget, finalAnswer: true },
      });
      const turn = agent.executeTurn("go");
      const events = await eventsOfTurn(turn);
      const result = await turn.result;
      expect(result).toMatchObject({ status: "completed", stopReason: "completed", text: "what I have", stop: null });
      expect(result.finalAnswer).toMatchObject({ limit, accountId: "turn:worker-1#1" });
      expect(model.calls).toHaveLength(calls);
      const [last, ...before] = model.calls.toReversed();
      // The tools in the request do not change: the provider's prompt cache starts with them.
      expect(last?.tools).toEqual(before[0]?.tools);
      expect(last?.toolChoice).toBe("none");
      expect(textOf(last?.messages.at(-1)?.content ?? "")).toMatch(/last model call .* tools are no longer available/);
      expect(before.every(({ tools, toolChoice }) => tools?.length === 1 && toolChoice === undefined)).toBe(true);
      expect(before.every(({ messages }) => !textOf(messages.at(-1)?.content ?? "").includes("last model call"))).toBe(
        true,
      );
      // Only that prompt contained the note. The journal and a warning record that it was the last call.
      expect(JSON.stringify(await agent.getMessages())).not.toContain("last model call");
      const requested = await entriesOfType(stage().look(), "worker-1", "model.requested");
      expect(requested.map(({ last: met }) => met?.limit)).toEqual([...before.map(() => undefined), limit]);
      const told = events.filter((event) => event.type === "warning" && event.code === "last_call");
      expect(told).toHaveLength(1);
      expect(told[0]).toMatchObject({ message: expect.stringMatching(/^the last permitted .*: worker, this turn: /) });
    },
  );

  it("tool calls in the last answer are not run, each gets a result, and the turn stops with its text", async () => {
    const ran: string[] = [];
    const { agent, model } = await started(stubborn, {
      tools: [step(ran)],
      budget: { maxSteps: 3, finalAnswer: true },
    });
    const result = await agent.executeTurn("go").result;
    expect(result).toMatchObject({ status: "stopped", stopReason: "steps_limit", text: "still at it", steps: 3 });
    expect(result.stop).toMatchObject({
      limit: "maxSteps",
      used: 3,
      max: 3,
      message: "worker, this turn: 3 of 3 steps",
    });
    expect(ran).toHaveLength(2);
    expect(model.calls).toHaveLength(3);
    expect((await toolTextsOf(agent)).at(-1)).toBe("Not run: worker, this turn: 3 of 3 steps");
    expect(orderFault(await agent.getMessages())).toBeUndefined();
    expect(agent.state.status).toBe("ready");
  });

  it("the same holds for tokens, and the reported use includes the last call", async () => {
    const { agent } = await started(stubborn, {
      maxOutputTokens: 300,
      budget: { maxSteps: 50, maxTokens: 800, finalAnswer: true },
    });
    const { stop, text } = await agent.executeTurn("go").result;
    expect(text).toBe("still at it");
    expect(stop).toMatchObject({ reason: "token_limit", limit: "maxTokens", max: 800 });
    const [account] = await stage().look().accounts("default", "worker-1");
    expect(stop?.used).toBe(account?.used.tokens);
    expect(account?.reserved.tokens).toBe(0);
  });

  it("a hook that calls continue() does not make them run", async () => {
    const ran: string[] = [];
    const { agent } = await started(stubborn, {
      tools: [step(ran)],
      budget: { maxSteps: 1, finalAnswer: true },
      hooks: { afterLlm: (draft) => draft.continue() },
    });
    expect(await agent.executeTurn("go").result).toMatchObject({ status: "stopped", stopReason: "steps_limit" });
    expect(ran).toEqual([]);
  });

  it("structured output is still requested", async () => {
    const { agent, model } = await started(
      ({ toolChoice }) => (toolChoice === "none" ? '{"total": 3}' : calling("step")),
      {
        budget: { maxSteps: 2, finalAnswer: true },
        output: z.object({ total: z.number() }),
      },
    );
    expect(await agent.executeTurn("go").result).toMatchObject({ status: "completed", output: { total: 3 } });
    expect(model.calls[1]?.responseFormat).toMatchObject({ type: "json_schema" });
  });

  it("a retry of the last call allows no tools either", async () => {
    let failures = 0;
    const { agent, model } = await started(
      (request) => {
        if (request.toolChoice !== "none") return calling("step");
        failures += 1;
        return failures === 1
          ? { error: new ModelError("down", { status: 503, retryable: true, mayHaveBeenSent: true, retryAfterMs: 0 }) }
          : "after all";
      },
      { budget: { maxSteps: 2, finalAnswer: true } },
    );
    const { result } = agent.executeTurn("go");
    expect(await result).toMatchObject({ status: "completed", text: "after all" });
    expect(model.calls.map(({ toolChoice }) => toolChoice)).toEqual([undefined, "none", "none"]);
  });

  it("also applies to a subagent with such a budget", async () => {
    const child = defineAgent({ name: "child", model: scriptedModel(diligent), tools: [step()] });
    const { agent } = await started(
      ({ messages }) =>
        messages.at(-1)?.role === "tool" ? "the end" : calling({ name: "child", arguments: { input: "go" } }),
      { tools: [subagent(child, { budget: { maxTreeSteps: 2, finalAnswer: true } })] },
    );
    expect((await agent.executeTurn("go").result).status).toBe("completed");
    expect(await toolTextsOf(agent)).toEqual(["what I have"]);
  });

  it("also applies to an agent's lifetime budget", async () => {
    const life = { maxTreeSteps: 3, finalAnswer: true };
    const { agent } = await started(diligent, { budget: { maxSteps: 50 } }, life);
    const result = await agent.executeTurn("go").result;
    expect(result).toMatchObject({ status: "completed", text: "what I have", steps: 3 });
    expect(result.finalAnswer).toMatchObject({ accountId: "agent:worker-1" });
  });

  it("without finalAnswer the turn stops in the middle of its work", async () => {
    const { agent, model } = await started(diligent, { budget: { maxSteps: 3 } });
    expect(await agent.executeTurn("go").result).toMatchObject({ status: "stopped", finalAnswer: null });
    expect(model.calls.every(({ tools }) => tools !== undefined)).toBe(true);
  });
});
