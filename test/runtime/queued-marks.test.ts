import { expect, it } from "vitest";
import { z } from "zod";
import { type Agent, defineAgent, defineTool, type EffectClass, type Turn } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { elapse, orderFault, toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate } from "../support/turn-probes.ts";

describeRuntimes("queued tools that are paused, aborted or cut", (stage) => {
  interface Play {
    readonly agent: Agent;
    readonly turn: Turn;
    /** Each call waits here. */
    readonly hold: ReturnType<typeof createGate<string>>;
    readonly aborted: unknown[];
  }

  /** An agent that has called the tool twice. The queue runs one call at a time. */
  async function play(effect: EffectClass, budget?: { maxSeconds: number }): Promise<Play> {
    const hold = createGate<string>();
    const aborted: unknown[] = [];
    const browse = defineTool({
      name: "browse",
      description: "Browses.",
      parameters: z.object({}),
      queue: "browser",
      effect,
      execute: async (_args, { signal }) => {
        signal.addEventListener("abort", () => aborted.push(signal.reason));
        return await hold.pass();
      },
    });
    const model = scriptedModel([calling("browse", "browse"), "the end", "the next end"]);
    const definition = defineAgent({ name: "worker", model, tools: [browse], ...(budget ? { budget } : {}) });
    const runtime = await stage().open({ agents: [definition], random: () => 0.5 });
    const agent = await runtime.agent("worker", { agentId: "worker-1" });
    await agent.start();
    const turn = agent.executeTurn("go");
    await hold.reached();
    return { agent, turn, hold, aborted };
  }

  it.each([
    { effect: "none", told: [/^Interrupted by user$/, /^Interrupted by user$/] },
    { effect: "once", told: [/is not known: Interrupted by user/, /^Interrupted by user$/] },
  ] as const)("an abort of a running and a waiting $effect call", async ({ effect, told }) => {
    const { agent, turn, aborted } = await play(effect);
    await turn.abort();
    const result = await elapse(stage().clock, turn.result);
    expect(result).toMatchObject({ status: "stopped", stopReason: "user_requested" });
    const texts = await toolTextsOf(agent);
    expect(texts).toHaveLength(2);
    for (const [index, pattern] of told.entries()) expect(texts[index]).toMatch(pattern);
    expect(aborted).toHaveLength(1);
    expect(orderFault(await agent.getMessages())).toBeUndefined();
    const after = await elapse(stage().clock, agent.executeTurn("again").result);
    expect(after).toMatchObject({ status: "completed", text: "the end" });
    const record = await stage().look().readAgent({ tenant: "default", agentId: "worker-1" });
    expect(record?.queued ?? {}).toEqual({});
    expect(await stage().look().inbox({ tenant: "default", agentId: "worker-1" })).toEqual([]);
  });

  it("a pause: the running call ends and is recorded, and the waiting one starts after the pause", async () => {
    const { agent, turn, hold } = await play("once");
    const settled = Promise.withResolvers<void>();
    turn.subscribe({
      next: ({ type }) => {
        if (type === "tool.completed") settled.resolve();
      },
    });
    await agent.pause();
    hold.open("read");
    await elapse(stage().clock, settled.promise);
    expect(hold.count).toBe(1);
    await agent.resume();
    const result = await elapse(stage().clock, turn.result);
    expect(result).toMatchObject({ status: "completed", text: "the end", toolCalls: 2 });
    expect(await toolTextsOf(agent)).toEqual(["read", "read"]);
    expect(hold.count).toBe(2);
  });

  it("working time counts while a call is queued, and its limit cuts the call", async () => {
    const { agent, turn, aborted } = await play("none", { maxSeconds: 5 });
    stage().clock.advance(6_000);
    const result = await elapse(stage().clock, turn.result);
    expect(result).toMatchObject({ status: "stopped", stopReason: "time_limit" });
    expect(aborted).toHaveLength(1);
    expect(await toolTextsOf(agent)).toHaveLength(2);
  });
});
