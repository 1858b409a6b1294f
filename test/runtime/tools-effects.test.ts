import { expect, it } from "vitest";
import { z } from "zod";
import { type Agent, defineAgent, defineTool, type Tool, ToolNotStartedError } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { elapse, entriesOfType, toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate } from "../support/turn-probes.ts";

const nothing = z.object({});

describeRuntimes("tool effects", (stage) => {
  /** An agent that calls the tool once and then answers. */
  async function agentWith(tool: Tool<Record<string, never>>): Promise<Agent> {
    const model = scriptedModel([calling(tool.name), "the end"]);
    const definition = defineAgent({ name: "worker", model, tools: [tool] });
    const runtime = await stage().open({ agents: [definition], random: () => 0.5 });
    const agent = await runtime.agent("worker", { agentId: "worker-1" });
    await agent.start();
    return agent;
  }

  it.each(["none", "keyed"] as const)("a %s tool is retried after a wait with the same key", async (effect) => {
    const keys: string[] = [];
    const times: number[] = [];
    const flaky = defineTool({
      name: "flaky",
      description: "Fails twice.",
      parameters: nothing,
      effect,
      maxAttempts: 3,
      execute(_args, run) {
        keys.push(run.idempotencyKey);
        times.push(stage().clock.now());
        if (run.attempt < 3) throw new Error(`no luck at attempt ${run.attempt}`);
        return `done at attempt ${run.attempt}`;
      },
    });
    const agent = await agentWith(flaky);
    const result = await elapse(stage().clock, agent.executeTurn("go").result);
    expect(result).toMatchObject({ status: "completed", text: "the end", toolCalls: 1 });
    expect(await toolTextsOf(agent)).toEqual(["done at attempt 3"]);
    expect(keys).toEqual(["worker-1#1:1:0", "worker-1#1:1:0", "worker-1#1:1:0"]);
    const retries = await entriesOfType(stage().look(), "worker-1", "tool.retrying");
    expect(retries.map(({ attempt, retryAt, at }) => [attempt, retryAt - at])).toEqual([
      [1, 250],
      [2, 500],
    ]);
    for (const [index, { retryAt }] of retries.entries()) expect(times[index + 1]).toBeGreaterThanOrEqual(retryAt);
  });

  it("a tool that fails at every attempt returns an error, and the turn continues", async () => {
    let runs = 0;
    const broken = defineTool({
      name: "broken",
      description: "Fails.",
      parameters: nothing,
      effect: "none",
      maxAttempts: 2,
      execute() {
        runs += 1;
        throw new TypeError("the disk is full");
      },
    });
    const agent = await agentWith(broken);
    const result = await elapse(stage().clock, agent.executeTurn("go").result);
    expect(runs).toBe(2);
    expect(result.status).toBe("completed");
    expect(result.errors).toEqual([
      { code: "TypeError", message: "the disk is full", retryable: false, callId: "worker-1#1:1:0" },
    ]);
    expect(await toolTextsOf(agent)).toEqual(["Error: the disk is full"]);
  });

  it("a once tool that throws after its start is not repeated, and its outcome is reported to the model as unknown", async () => {
    let runs = 0;
    const pay = defineTool({
      name: "pay",
      description: "Pays.",
      parameters: nothing,
      execute() {
        runs += 1;
        throw new Error("the connection broke");
      },
    });
    const agent = await agentWith(pay);
    const result = await agent.executeTurn("go").result;
    expect(runs).toBe(1);
    expect(result.status).toBe("completed");
    expect(result.errors).toMatchObject([{ code: "outcome_unknown" }]);
    const [told] = await toolTextsOf(agent);
    expect(told).toBe(
      'The outcome of this call of "pay" is not known: the connection broke. It may or may not have taken effect. It is not repeated. Check before you rely on it.',
    );
  });

  it("ToolNotStartedError of a once tool is an ordinary error: nothing can have happened", async () => {
    const pay = defineTool({
      name: "pay",
      description: "Pays.",
      parameters: nothing,
      execute() {
        throw new ToolNotStartedError("no account is set up");
      },
    });
    const agent = await agentWith(pay);
    const result = await agent.executeTurn("go").result;
    expect(result.errors).toMatchObject([{ code: "tool_not_started", message: "no account is set up" }]);
    expect(await toolTextsOf(agent)).toEqual(["Error: no account is set up"]);
  });

  it.each([
    { says: { done: true, result: { receipt: 7 } } as const, told: /^\{"receipt":7\}$/, outcome: "success" },
    { says: { done: false } as const, told: /line went dead.*known not to have taken effect/, outcome: "error" },
    { says: { unknown: true } as const, told: /is not known: the line went dead/, outcome: "outcome_unknown" },
    { says: new Error("bank closed"), told: /line went dead.*failed too: bank closed/, outcome: "outcome_unknown" },
  ])("reconcile is called for a once tool that throws: $outcome", async ({ says, told, outcome }) => {
    const pay = defineTool({
      name: "pay",
      description: "Pays.",
      parameters: nothing,
      execute: () => {
        throw new Error("the line went dead");
      },
      async reconcile() {
        if (says instanceof Error) throw says;
        return says;
      },
    });
    const agent = await agentWith(pay);
    await agent.executeTurn("go").result;
    const [settled] = await entriesOfType(stage().look(), "worker-1", "tool.settled");
    expect(settled?.outcome).toBe(outcome);
    expect((await toolTextsOf(agent))[0]).toMatch(told);
  });

  it.each([
    { effect: "none" as const, told: /^Error: the tool did not end within 1000 ms$/ },
    { effect: "once" as const, told: /not known: the tool did not end within 1000 ms/ },
  ])("a $effect tool that exceeds its timeout is cut, and its signal aborted", async ({ effect, told }) => {
    const gate = createGate();
    const reasons: string[] = [];
    const slow = defineTool({
      name: "slow",
      description: "Hangs.",
      parameters: nothing,
      effect,
      timeoutMs: 1_000,
      execute(_args, { signal }) {
        signal.addEventListener("abort", () => reasons.push((signal.reason as Error).message), { once: true });
        return gate.pass();
      },
    });
    const agent = await agentWith(slow);
    const { result } = agent.executeTurn("go");
    await gate.reached();
    stage().clock.advance(999);
    expect(reasons).toEqual([]);
    stage().clock.advance(1);
    expect((await result).status).toBe("completed");
    expect(reasons).toEqual(["the tool did not end within 1000 ms"]);
    const [text] = await toolTextsOf(agent);
    expect(text).toMatch(told);
  });
});
