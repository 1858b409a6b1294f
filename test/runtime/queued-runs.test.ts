import { expect, it } from "vitest";
import { z } from "zod";
import {
  type AgentDefinition,
  defineAgent,
  defineTool,
  type RunContext,
  type RuntimeOptions,
  type ToolDefinition,
} from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { elapse, entriesOfType, toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, eventsOfTurn } from "../support/turn-probes.ts";

const nothing = z.object({});
type Options = Partial<ToolDefinition<typeof nothing>> & { execute(args: object, run: RunContext): unknown };

function workerWith(options: Options): AgentDefinition {
  const tool = defineTool({
    name: "browse",
    description: "Browses.",
    parameters: nothing,
    queue: "browser",
    effect: "none",
    ...options,
  });
  const note = defineTool({
    name: "note",
    description: "Notes.",
    parameters: nothing,
    effect: "none",
    execute: () => "noted",
  });
  const model = scriptedModel([calling("note"), calling("browse"), "the end"]);
  return defineAgent({ name: "worker", model, tools: [tool, note] });
}

describeRuntimes("the run context of a queued tool", (stage) => {
  async function agentOf(agents: AgentDefinition[], options: Partial<Pick<RuntimeOptions, "resolveAuth">> = {}) {
    const runtime = await stage().open({ agents, random: () => 0.5, ...options });
    const agent = await runtime.agent("worker", { agentId: "worker-1" });
    await agent.start();
    return agent;
  }

  it("has agent, prompt, earlier calls, trace and actor", async () => {
    let seen: unknown;
    const agent = await agentOf([
      workerWith({
        execute(_args, run) {
          const { turnId, step, callId, attempt, actorId, idempotencyKey, previousTools, prompt } = run;
          const trace = run.trace.map((entry) => entry.type);
          const auth = run.auth?.credentials;
          seen = { turnId, step, callId, attempt, actorId, idempotencyKey, previousTools, prompt, trace, auth };
          return `${run.agent.name} ${run.agent.agentId} ${run.agent.depth}`;
        },
      }),
    ]);
    const auth = { actorId: "ada", credentials: { token: "token-of-ada" } };
    await elapse(stage().clock, agent.executeTurn("find it", { auth }).result);
    expect(await toolTextsOf(agent)).toEqual(["noted", "worker worker-1 0"]);
    expect(seen).toEqual({
      turnId: "worker-1#1",
      step: 2,
      callId: "worker-1#1:2:0",
      attempt: 1,
      actorId: "ada",
      idempotencyKey: "worker-1#1:2:0",
      previousTools: [{ callId: "worker-1#1:1:0", name: "note", outcome: "success" }],
      prompt: "find it",
      trace: ["user_input", "llm_call", "tool_execution", "llm_call"],
      auth: { token: "token-of-ada" },
    });
  });

  it("credentials and secrets are redacted in its result and stored nowhere", async () => {
    const tool = defineTool({
      name: "browse",
      description: "Browses.",
      parameters: nothing,
      queue: "browser",
      effect: "none",
      auth: "required",
      secrets: { key: () => "secret-of-the-site" },
      execute: ({ key }, run) => `with ${key} for ${JSON.stringify(run.auth?.credentials)}`,
    });
    const worker = defineAgent({ name: "worker", model: scriptedModel([calling("browse"), "the end"]), tools: [tool] });
    const agent = await agentOf([worker]);
    const auth = { actorId: "ada", credentials: { token: "token-of-ada-1234" } };
    await elapse(stage().clock, agent.executeTurn("find it", { auth }).result);
    expect(await toolTextsOf(agent)).toEqual(['with [secret:key] for {"token":"[redacted]"}']);
    expect(stage().stored()).not.toMatch(/secret-of-the-site|token-of-ada-1234/);
  });

  it("progress reaches the turn's followers, and its start event names the queue", async () => {
    const agent = await agentOf([
      workerWith({
        execute(_args, run) {
          run.progress({ pages: 3 });
          return "read";
        },
      }),
    ]);
    const events = await elapse(stage().clock, eventsOfTurn(agent.executeTurn("find it")));
    expect(events.find(({ type }) => type === "tool.progress")).toMatchObject({ name: "browse", update: { pages: 3 } });
    const started = events.flatMap((event) => (event.type === "tool.started" ? [[event.name, event.queue]] : []));
    expect(started).toEqual([
      ["note", undefined],
      ["browse", "browser"],
    ]);
  });

  it("generate() is refused with a clear error", async () => {
    const agent = await agentOf([
      workerWith({
        execute: async (_args, run) => await run.generate({ messages: [{ role: "user", content: "say" }] }),
      }),
    ]);
    await elapse(stage().clock, agent.executeTurn("find it").result);
    expect((await toolTextsOf(agent))[1]).toMatch(
      /run\.generate\(\) was called in the queued tool "browse".*Remove the queue/,
    );
  });

  it("a subagent's result: the child starts when the tool returns run.await(child)", async () => {
    const reader = defineAgent({ name: "reader", model: scriptedModel(["what it says"]) });
    const worker = workerWith({
      async execute(_args, run) {
        const child = await run.spawn(reader, "read it", { key: "read" });
        return run.await(child, { prefix: "Read: " });
      },
    });
    const agent = await agentOf([worker, reader]);
    const result = await elapse(stage().clock, agent.executeTurn("find it").result);
    expect(result).toMatchObject({ status: "completed", text: "the end" });
    expect((await toolTextsOf(agent))[1]).toBe("Read: what it says");
    expect(await entriesOfType(stage().look(), "worker-1", "child.spawned")).toHaveLength(1);
  });

  it.each([
    {
      it: "waits for its subagent",
      act: async (run: RunContext, reader: AgentDefinition) =>
        (await (await run.spawn(reader, "read it", { key: "read" })).result).text,
      told: /waits for the result of its subagent "read".*Return run\.await\(child\)/,
    },
    {
      it: "does not wait for its subagent",
      act: async (run: RunContext, reader: AgentDefinition) => {
        await run.spawn(reader, "read it", { key: "read" });
        return "done";
      },
      told: /spawned the subagent "read" without returning run\.await\(child\)/,
    },
    {
      it: "spawns a definition that the runtime does not know",
      act: async (run: RunContext) => {
        const stranger = defineAgent({ name: "stranger", model: scriptedModel([]) });
        return run.await(await run.spawn(stranger, "read it", { key: "read" }));
      },
      told: /this runtime does not know the definition "stranger"; add it to \{ agents: \[\.\.\.\] \} of createRuntime/,
    },
    {
      it: "leaves its result to another call's child",
      act: (run: RunContext) => Promise.resolve(run.await({ agentId: "worker-1~0" })),
      told: /expects a child that this call has started with run\.spawn\(\), not "worker-1~0"/,
    },
  ])("a tool that $it gets an error that suggests a fix", async ({ act, told }) => {
    const reader = defineAgent({ name: "reader", model: scriptedModel([]) });
    const agent = await agentOf([workerWith({ execute: (_args, run) => act(run, reader) }), reader]);
    const result = await elapse(stage().clock, agent.executeTurn("find it").result);
    expect(result.status).toBe("completed");
    expect((await toolTextsOf(agent))[1]).toMatch(told);
    expect(await entriesOfType(stage().look(), "worker-1", "child.spawned")).toEqual([]);
  });
});
