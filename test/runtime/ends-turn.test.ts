import { expect, it } from "vitest";
import { z } from "zod";
import {
  type AgentTool,
  createRuntime,
  defineAgent,
  defineTool,
  memoryStores,
  type Plugin,
  subagent,
  textOf,
} from "../../src/index.ts";
import { replay, scriptedModel } from "../../src/testing/index.ts";
import { elapse } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling } from "../support/turn-probes.ts";

const none = z.object({});

function ending(name: string, execute: () => unknown): AgentTool {
  return defineTool({ name, description: name, parameters: none, effect: "none", endsTurn: true, execute });
}

describeRuntimes("endsTurn", (stage) => {
  async function run(definition: ReturnType<typeof defineAgent>) {
    const runtime = await stage().open({ agents: [definition] });
    const agent = await runtime.agent(definition.name, { agentId: "a" });
    await agent.start();
    return { runtime, agent, result: await agent.executeTurn("go").result };
  }

  it("makes the result the answer, without another model call, and the conversation goes on from it", async () => {
    const model = scriptedModel([calling({ name: "lookup" }), "second"]);
    const { agent, result } = await run(
      defineAgent({ name: "desk", model, tools: [ending("lookup", () => "found it")] }),
    );
    expect(result).toMatchObject({ status: "completed", stopReason: "completed", steps: 1, text: "found it" });
    expect((await agent.executeTurn("and now?").result).text).toBe("second");
    expect(model.calls[1]?.messages.map(({ role }) => role)).toEqual([
      "user",
      "assistant",
      "tool",
      "assistant",
      "user",
    ]);
  });

  it("waits for all calls of the round and takes the first of them in their order", async () => {
    const slow = Promise.withResolvers<string>();
    const tools = [
      ending("first", () => slow.promise),
      ending("second", () => {
        slow.resolve("one");
        return "two";
      }),
    ];
    const { result } = await run(
      defineAgent({ name: "desk", model: scriptedModel([calling({ name: "first" }, { name: "second" })]), tools }),
    );
    expect(result).toMatchObject({ status: "completed", steps: 1, text: "one", toolCalls: 2 });
  });

  it("lets the model continue after a failed call, and after a child that did not complete", async () => {
    const broken = ending("broken", () => {
      throw new Error("no");
    });
    const child = defineAgent({ name: "child", model: scriptedModel([calling({ name: "load" })]), tools: [loud()] });
    const model = scriptedModel([
      calling({ name: "broken" }),
      calling({ name: "child", arguments: { input: "x" } }),
      "own",
    ]);
    const tools = [broken, subagent(child, { endsTurn: true, budget: { maxSteps: 1 } })];
    const { result } = await run(defineAgent({ name: "desk", model, tools }));
    expect(result).toMatchObject({ status: "completed", steps: 3, text: "own" });
  });

  it("takes the answer of a subagent, also as structured output", async () => {
    const child = defineAgent({ name: "child", model: scriptedModel(['{"n":1}']) });
    const output = z.object({ n: z.number().transform((n) => n + 1) });
    const model = scriptedModel([calling({ name: "child", arguments: { input: "x" } })]);
    const { result } = await run(
      defineAgent({ name: "desk", model, output, tools: [subagent(child, { endsTurn: true })] }),
    );
    expect(result).toMatchObject({ status: "completed", steps: 1, text: '{"n":1}', output: { n: 2 } });
  });

  it("shows a result that does not fit the output to the model, which answers itself", async () => {
    const model = scriptedModel([calling({ name: "lookup" }), '{"n":3}']);
    const { result } = await run(
      defineAgent({ name: "desk", model, output: z.object({ n: z.number() }), tools: [ending("lookup", () => "x")] }),
    );
    expect(result).toMatchObject({ status: "completed", steps: 2, output: { n: 3 } });
    expect(model.calls[1]?.messages.at(-1)?.content).toContain("The result that was to be the answer does not fit");
  });

  it("gives way to a hook that asks for another step, and to one that stops the turn", async () => {
    const hooks = { afterTools: (draft: { continue: () => void }) => draft.continue() };
    const model = scriptedModel([calling({ name: "lookup" }), "own"]);
    const { result } = await run(defineAgent({ name: "desk", model, hooks, tools: [ending("lookup", () => "x")] }));
    expect(result).toMatchObject({ status: "completed", steps: 2, text: "own" });
  });

  it("passes the guards of outputs", async () => {
    const guards: Plugin = {
      name: "mask",
      guards: {
        output: (text) => (text === "bad" ? { block: "not this" } : { rewrite: text.replace("secret", "***") }),
      },
    };
    for (const [value, text] of [
      ["a secret", "a ***"],
      ["bad", "not this"],
    ] as const) {
      const definition = defineAgent({
        name: `desk-${text.length}`,
        model: scriptedModel([calling({ name: "lookup" })]),
        plugins: [guards],
        tools: [ending("lookup", () => value)],
      });
      const runtime = await stage().open({ agents: [definition] });
      const agent = await runtime.agent(definition.name, { agentId: definition.name });
      await agent.start();
      expect((await agent.executeTurn("go").result).text).toContain(text);
    }
  });

  it("is refused with a wrong value, and for a background child", () => {
    const child = defineAgent({ name: "child", model: scriptedModel(["x"]) });
    expect(() => subagent(child, { endsTurn: true, mode: "background" })).toThrow(/endsTurn applies only to calls/);
    expect(() => subagent(child, { endsTurn: "yes" as never })).toThrow(/endsTurn/);
    expect(() =>
      defineTool({ name: "t", description: "t", parameters: none, endsTurn: 1 as never, execute: () => "" }),
    ).toThrow(/endsTurn/);
  });
});

function loud(): AgentTool {
  return defineTool({ name: "load", description: "load", parameters: none, effect: "none", execute: () => "loaded" });
}

function team() {
  const read = scriptedModel(
    ({ messages }) => `read ${messages.map(({ role, content }) => `${role}:${textOf(content)}`).join("|")}`,
  );
  const child = defineAgent({ name: "child", model: read });
  const script = ["hello", calling({ name: "load" }), calling({ name: "child", arguments: { input: "task" } })];
  const tools = [loud(), subagent(child, { history: "conversation", endsTurn: true })];
  return { read, lead: defineAgent({ name: "lead", model: scriptedModel(script), tools }) };
}

describeRuntimes("the conversation of the parent", (stage) => {
  it("precedes the input of a child, without calls and results", async () => {
    const { lead } = team();
    const runtime = await stage().open({ agents: [lead] });
    const agent = await runtime.agent("lead", { agentId: "a" });
    await agent.start();
    await agent.executeTurn("hi").result;
    const { text } = await agent.executeTurn("help").result;
    expect(text).toBe("read user:hi|assistant:hello|user:help|user:task");
    const [child] = (await runtime.list()).filter(({ depth }) => depth === 1);
    const messages = await (await runtime.find(child?.agentId ?? "")).getMessages();
    expect(messages.map(({ content }) => content)).toEqual(["hi", "hello", "help", "task", text]);
  });

  it.each([undefined, "slow"])("precedes the input of a child that code spawns, in the queue %s", async (queue) => {
    const read = scriptedModel(({ messages }) => messages.map(({ content }) => textOf(content)).join("|"));
    const child = defineAgent({ name: "child", model: read });
    const send = defineTool({
      name: "send",
      description: "Sends it.",
      parameters: none,
      ...(queue === undefined ? {} : { queue }),
      endsTurn: true,
      execute: async (_, run) =>
        run.await(await run.spawn(child, "task", { key: "one", history: "conversation" }), { prefix: "told: " }),
    });
    const lead = defineAgent({
      name: "lead",
      model: scriptedModel(["hello", calling({ name: "send" })]),
      tools: [send],
    });
    const runtime = await stage().open({ agents: [lead, child] });
    const agent = await runtime.agent("lead", { agentId: "a" });
    await agent.start();
    await agent.executeTurn("hi").result;
    const { text, steps } = await elapse(stage().clock, agent.executeTurn("help").result);
    expect([text, steps]).toEqual(["told: hi|hello|help|task", 1]);
  });

  it("is refused with a wrong value", async () => {
    const { lead } = team();
    expect(() => subagent(lead, { history: "all" as never })).toThrow(/history/);
    const send = defineTool({
      name: "send",
      description: "Sends it.",
      parameters: none,
      execute: async (_, run) => (await run.spawn(lead, "task", { key: "one", history: "all" as never })).agentId,
    });
    const model = scriptedModel(({ messages }) => {
      const last = messages.at(-1);
      return last?.role === "tool" ? textOf(last.content) : calling({ name: "send" });
    });
    const runtime = await stage().open({ agents: [defineAgent({ name: "desk", model, tools: [send] }), lead] });
    const agent = await runtime.agent("desk", { agentId: "a" });
    await agent.start();
    expect((await agent.executeTurn("go").result).text).toMatch(/run\.spawn\(\).*history.*"none".*"conversation"/);
    expect(await runtime.list()).toHaveLength(1);
  });
});

const desk = (options: { endsTurn?: boolean; history?: "conversation" }) => {
  const child = defineAgent({ name: "child", model: scriptedModel(["done"]) });
  const model = scriptedModel([calling({ name: "child", arguments: { input: "task" } }), "own"]);
  return defineAgent({ name: "desk", model, tools: [subagent(child, options)] });
};

it("replays, and a definition without the options diverges", async () => {
  const stores = memoryStores();
  const both = { endsTurn: true, history: "conversation" } as const;
  const runtime = await createRuntime({ agents: [desk(both)], stores });
  const agent = await runtime.agent("desk", { agentId: "a" });
  await agent.start();
  expect((await agent.executeTurn("go").result).text).toBe("done");
  await runtime.shutdown();
  const source = { stores, agentId: "a" };
  expect(await replay(source, { agents: desk(both) })).toMatchObject({ isEqual: true, changed: [] });
  expect(await replay(source, { agents: desk({ history: "conversation" }) })).toMatchObject({
    isEqual: false,
    divergedAt: { agentName: "desk", turn: 1, step: 1 },
    part: "tool call",
  });
});
