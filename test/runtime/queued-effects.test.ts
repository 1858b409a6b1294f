import { expect, it } from "vitest";
import { z } from "zod";
import {
  type Agent,
  AgentStopError,
  defineAgent,
  defineTool,
  type Tool,
  type ToolDefinition,
  ToolNotStartedError,
} from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { elapse, entriesOfType, orderFault, toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate } from "../support/turn-probes.ts";

const nothing = z.object({});
type Options = Partial<ToolDefinition<typeof nothing>> & Pick<ToolDefinition<typeof nothing>, "execute">;

function queued(options: Options): Tool<Record<string, never>> {
  return defineTool({ name: "browse", description: "Browses.", parameters: nothing, queue: "browser", ...options });
}

describeRuntimes("tools with a queue", (stage) => {
  /** An agent that calls the tool `calls` times and then answers. */
  async function agentWith(tool: Tool<Record<string, never>>, calls = 1): Promise<Agent> {
    const model = scriptedModel([calling(...Array.from({ length: calls }, () => tool.name)), "the end"]);
    const definition = defineAgent({ name: "worker", model, tools: [tool] });
    const runtime = await stage().open({ agents: [definition], random: () => 0.5 });
    const agent = await runtime.agent("worker", { agentId: "worker-1" });
    await agent.start();
    return agent;
  }

  it("a call runs from its queue, and its result reaches the model", async () => {
    const agent = await agentWith(queued({ execute: (_args, run) => `${run.prompt} by ${run.callId}` }), 3);
    const result = await elapse(stage().clock, agent.executeTurn("go").result);
    expect(result).toMatchObject({ status: "completed", text: "the end", toolCalls: 3 });
    expect(await toolTextsOf(agent)).toEqual(["0", "1", "2"].map((index) => `go by worker-1#1:1:${index}`));
    expect(orderFault(await agent.getMessages())).toBeUndefined();
    const started = await entriesOfType(stage().look(), "worker-1", "tool.started");
    expect(started.map(({ queue, attempt }) => [queue, attempt])).toEqual(
      Array.from({ length: 3 }, () => ["browser", 1]),
    );
    // No queued call, inbox item or timer remains.
    const record = await stage().look().readAgent({ tenant: "default", agentId: "worker-1" });
    expect(record?.queued ?? {}).toEqual({});
    expect(await stage().look().inbox({ tenant: "default", agentId: "worker-1" })).toEqual([]);
    expect(await stage().look().nextTimerAt()).toBeUndefined();
  });

  it.each(["none", "keyed"] as const)("a %s tool is retried after a wait with the same key", async (effect) => {
    const seen: [number, string, number][] = [];
    const flaky = queued({
      effect,
      maxAttempts: 3,
      execute(_args, run) {
        seen.push([run.attempt, run.idempotencyKey, stage().clock.now()]);
        if (run.attempt < 3) throw new Error(`no luck at attempt ${run.attempt}`);
        return `done at attempt ${run.attempt}`;
      },
    });
    const agent = await agentWith(flaky);
    const result = await elapse(stage().clock, agent.executeTurn("go").result);
    expect(result).toMatchObject({ status: "completed", text: "the end", toolCalls: 1 });
    expect(await toolTextsOf(agent)).toEqual(["done at attempt 3"]);
    expect(seen.map(([attempt, key]) => [attempt, key])).toEqual([1, 2, 3].map((n) => [n, "worker-1#1:1:0"]));
    const retries = await entriesOfType(stage().look(), "worker-1", "tool.retrying");
    expect(retries.map(({ attempt, retryAt, at }) => [attempt, retryAt - at])).toEqual([
      [1, 250],
      [2, 500],
    ]);
    for (const [index, { retryAt }] of retries.entries()) expect(seen[index + 1]?.[2]).toBeGreaterThanOrEqual(retryAt);
    // The next attempt is stored at once; the queue delays it.
    const started = await entriesOfType(stage().look(), "worker-1", "tool.started");
    for (const [index, { retryAt }] of retries.entries()) expect(started[index + 1]?.at).toBeLessThan(retryAt);
  });

  it("a tool that fails at every attempt returns an error", async () => {
    const agent = await agentWith(
      queued({
        effect: "none",
        maxAttempts: 2,
        execute() {
          throw new TypeError("the disk is full");
        },
      }),
    );
    const result = await elapse(stage().clock, agent.executeTurn("go").result);
    expect(result.errors).toEqual([
      { code: "TypeError", message: "the disk is full", retryable: false, callId: "worker-1#1:1:0" },
    ]);
    expect(await toolTextsOf(agent)).toEqual(["Error: the disk is full"]);
  });

  it("a once tool that throws is not repeated, and its outcome is unknown", async () => {
    let runs = 0;
    const agent = await agentWith(
      queued({
        execute() {
          runs += 1;
          throw new Error("the connection broke");
        },
      }),
    );
    const result = await elapse(stage().clock, agent.executeTurn("go").result);
    expect(runs).toBe(1);
    expect(result.errors).toMatchObject([{ code: "outcome_unknown" }]);
    expect((await toolTextsOf(agent))[0]).toMatch(/"browse" is not known: the connection broke\. It may or may not/);
  });

  it("ToolNotStartedError of a once tool is an ordinary error; after any other error reconcile is called", async () => {
    const notStarted = await agentWith(
      queued({
        execute() {
          throw new ToolNotStartedError("no account is set up");
        },
      }),
    );
    const result = await elapse(stage().clock, notStarted.executeTurn("go").result);
    expect(result.errors).toMatchObject([{ code: "tool_not_started", message: "no account is set up" }]);
  });

  it("reconcile provides the result of a once tool that threw", async () => {
    const agent = await agentWith(
      queued({
        execute() {
          throw new Error("the line went dead");
        },
        reconcile: async () => ({ done: true, result: { receipt: 7 } }),
      }),
    );
    await elapse(stage().clock, agent.executeTurn("go").result);
    expect(await toolTextsOf(agent)).toEqual(['{"receipt":7}']);
  });

  it("a tool that exceeds its timeout is cut, and its signal aborted", async () => {
    let aborted: unknown;
    const hold = createGate<string>();
    const agent = await agentWith(
      queued({
        effect: "none",
        timeoutMs: 1_000,
        execute: async (_args, { signal }) => {
          signal.addEventListener("abort", () => {
            aborted = signal.reason;
          });
          return await hold.pass();
        },
      }),
    );
    const result = await elapse(stage().clock, agent.executeTurn("go").result);
    expect(result.errors).toMatchObject([{ message: "the tool did not end within 1000 ms" }]);
    expect(String(aborted)).toMatch(/did not end within 1000 ms/);
  });

  it("AgentStopError stops the turn", async () => {
    const agent = await agentWith(
      queued({
        execute() {
          throw new AgentStopError("enough was found");
        },
      }),
    );
    const result = await elapse(stage().clock, agent.executeTurn("go").result);
    expect(result).toMatchObject({ status: "stopped", stopReason: "stop_requested", steps: 1 });
    expect(await toolTextsOf(agent)).toEqual(["The tool stopped the run: enough was found"]);
  });

  it("a result of 5 MB is stored whole, and the model gets an excerpt", async () => {
    const text = "page ".repeat(1_000_000);
    const agent = await agentWith(queued({ effect: "none", execute: () => text }));
    const result = await elapse(stage().clock, agent.executeTurn("go").result);
    expect(result.status).toBe("completed");
    const [settled] = await entriesOfType(stage().look(), "worker-1", "tool.settled");
    const key = { tenant: "default", agentId: "worker-1" };
    const artifact = await stage()
      .look()
      .artifact(key, settled?.artifactId ?? "");
    expect(artifact).toMatchObject({ name: "browse output", version: 1, size: text.length });
    expect(artifact?.content === text).toBe(true);
    expect((await toolTextsOf(agent))[0]?.length).toBeLessThan(33_000);
  });

  it("artifacts that it saves are stored with its result, under the versions it was given", async () => {
    const told: number[] = [];
    const agent = await agentWith(
      queued({
        effect: "none",
        async execute(_args, run) {
          for (const content of ["one", "two"]) {
            const saved = await run.saveArtifact({ name: "page", contentType: "text/plain", content });
            told.push(saved.version);
          }
          return "saved";
        },
      }),
    );
    await elapse(stage().clock, agent.executeTurn("go").result);
    const key = { tenant: "default", agentId: "worker-1" };
    const artifacts = await stage().look().artifacts(key);
    expect(artifacts.map(({ name, version }) => [name, version])).toEqual([
      ["page", 1],
      ["page", 2],
    ]);
    expect(told).toEqual([1, 2]);
    expect(artifacts).toMatchObject(told.map(() => ({ turnId: "worker-1#1", callId: "worker-1#1:1:0" })));
    expect((await stage().look().artifactByName(key, "page", 2))?.content).toBe("two");
  });
});
