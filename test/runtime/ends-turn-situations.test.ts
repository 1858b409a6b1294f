// Tools that end their turn, in the situations of other calls: decisions, queues, stubs, forks, deferred tools, steering, limits, streams.
import { expect, it } from "vitest";
import { z } from "zod";
import {
  type Agent,
  type AgentOptions,
  type AgentTool,
  createRuntime,
  defineAgent,
  defineTool,
  memoryStores,
  type Runtime,
  subagent,
  textOf,
  type ToolDefinition,
  type TroupeEvent,
} from "../../src/index.ts";
import { deferredTools } from "../../src/kit/index.ts";
import { fork, type ModelScript, replay, type ScriptedAnswer, scriptedModel } from "../../src/testing/index.ts";
import { requestOf } from "../support/deciding.ts";
import { elapse, orderFault, toolTextsOf } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate, eventsOfTurn } from "../support/turn-probes.ts";

const text = z.object({ text: z.string() });
type Options = Partial<ToolDefinition<typeof text>>;

/** A tool whose argument is its result, which ends the turn. */
function submit(options: Options = {}): AgentTool {
  return defineTool({
    name: "submit",
    description: "Hands in the result.",
    parameters: text,
    effect: "none",
    endsTurn: true,
    execute: ({ text: given }) => given,
    ...options,
  });
}

/** A tool that ends nothing. */
function look(options: Options = {}): AgentTool {
  return submit({ name: "look", endsTurn: false, ...options });
}

const submits = (given: string) => ({ name: "submit", arguments: { text: given } });
const looks = (given: string) => ({ name: "look", arguments: { text: given } });

describeRuntimes("tools that end their turn", (stage) => {
  async function opened(
    script: ModelScript,
    options: Partial<AgentOptions>,
  ): Promise<{ runtime: Runtime; agent: Agent }> {
    const runtime = await stage().open({
      agents: [defineAgent({ name: "desk", model: scriptedModel(script), ...options })],
    });
    const agent = await runtime.agent("desk", { agentId: "a" });
    await agent.start();
    return { runtime, agent };
  }

  const decisions = [
    { decide: { verdict: "approved" }, ends: { text: "the plan", steps: 1 } },
    { decide: { verdict: "edited", arguments: { text: "another plan" } }, ends: { text: "another plan", steps: 1 } },
    { decide: { verdict: "rejected", reason: "too long" }, ends: { text: "I write another.", steps: 2 } },
  ] as const;

  it.each(decisions)("a call that is $decide.verdict ends the turn only if it ran", async ({ decide, ends }) => {
    const { runtime, agent } = await opened([calling(submits("the plan")), "I write another."], {
      tools: [submit({ needsApproval: true })],
    });
    const turn = agent.executeTurn("go");
    const { requestId } = await requestOf(turn);
    await runtime.decide(requestId, { ...decide, by: "ada" });
    expect(await turn.result).toMatchObject({ status: "completed", ...ends });
    expect(orderFault(await agent.getMessages())).toBeUndefined();
  });

  it("a call beside one that waits for a person ends the turn only after the decision, with its own result", async () => {
    const { runtime, agent } = await opened([calling(submits("the plan"), looks("x")), "never"], {
      tools: [submit(), look({ needsApproval: true })],
    });
    const turn = agent.executeTurn("go");
    const { requestId } = await requestOf(turn);
    expect((await turn.current()).status).toBe("waiting");
    await runtime.decide(requestId, { verdict: "rejected" });
    expect(await turn.result).toMatchObject({ status: "completed", text: "the plan", steps: 1 });
    expect(await toolTextsOf(agent)).toHaveLength(2);
  });

  it("calls beside it keep their results, errors included", async () => {
    const failing = look({ execute: () => Promise.reject(new Error("no shelf")) });
    const child = defineAgent({ name: "child", model: scriptedModel("from the child") });
    const { agent } = await opened(
      [
        calling(looks("x"), submits("the plan"), { name: "child", arguments: { input: "y" } }, { name: "gone" }),
        "second",
      ],
      { tools: [submit(), failing, subagent(child)] },
    );
    expect(await agent.executeTurn("go").result).toMatchObject({ text: "the plan", steps: 1 });
    const results = (await toolTextsOf(agent)).toSorted();
    expect(results).toEqual([
      "Error: no shelf",
      expect.stringContaining('no tool "gone"'),
      "from the child",
      "the plan",
    ]);
    expect(orderFault(await agent.getMessages())).toBeUndefined();
    expect((await agent.executeTurn("and now?").result).text).toBe("second");
  });

  it("the result of a queued tool ends the turn", async () => {
    const { agent } = await opened([calling(submits("from the queue")), "never"], {
      tools: [submit({ queue: "slow" })],
    });
    const result = await elapse(stage().clock, agent.executeTurn("go").result);
    expect(result).toMatchObject({ status: "completed", text: "from the queue", steps: 1 });
  });

  it("a stub in the place of the tool ends the turn as the tool would", async () => {
    const definition = defineAgent({
      name: "desk",
      model: scriptedModel([calling(submits("x")), "never"]),
      tools: [submit({ execute: () => Promise.reject(new Error("it ran")) })],
    });
    const runtime = await stage().open({ agents: [definition] });
    const agent = await runtime.agent(definition, {
      agentId: "a",
      stubs: [{ tool: "submit", output: "from the stub" }],
    });
    await agent.start();
    expect(await agent.executeTurn("go").result).toMatchObject({ text: "from the stub", steps: 1 });
  });

  it("a call through call_tool ends the turn as a call of the tool", async () => {
    const { agent } = await opened(
      [calling({ name: "call_tool", arguments: { name: "submit", arguments: { text: "deferred" } } }), "never"],
      { tools: deferredTools([submit() as never, look() as never]) },
    );
    expect(await agent.executeTurn("go").result).toMatchObject({ text: "deferred", steps: 1 });
  });

  it("an input that arrives while the tool runs is answered by the model", async () => {
    const gate = createGate();
    const slow = submit({
      execute: async ({ text: given }) => {
        await gate.pass();
        return given;
      },
    });
    const { agent } = await opened([calling(submits("the plan")), "In blue, then."], { tools: [slow] });
    const turn = agent.executeTurn("go");
    await gate.reached();
    expect(await turn.steer("in blue")).toMatchObject({ status: "delivered", step: 2 });
    gate.open();
    expect(await turn.result).toMatchObject({ text: "In blue, then.", steps: 2 });
  });

  it("an input that arrives while the answer is checked is seen by the same turn or the next one, and never lost", async () => {
    const gate = createGate();
    const output = z.object({ n: z.number() }).refine(async () => {
      await gate.pass();
      return true;
    });
    const model = scriptedModel(({ messages }) => {
      const said = messages.filter(({ role }) => role === "user").map(({ content }) => textOf(content));
      return said.includes("in blue") ? '{"n":2}' : calling(submits('{"n":1}'));
    });
    const runtime = await stage().open({ agents: [defineAgent({ name: "desk", model, output, tools: [submit()] })] });
    const agent = await runtime.agent("desk", { agentId: "a" });
    await agent.start();
    const turn = agent.executeTurn("go");
    await gate.reached();
    const steered = turn.steer("in blue");
    gate.open();
    const where = await steered;
    await turn.result;
    const last = await agent.turn(where.turnId).result;
    expect(last.output).toEqual({ n: 2 });
    expect((await runtime.turns()).every(({ status }) => status === "completed")).toBe(true);
    expect(orderFault(await agent.getMessages())).toBeUndefined();
  });

  it.each([
    ["steps", { maxSteps: 1 }],
    ["tool calls", { maxToolCalls: 1 }],
  ] as const)("the result of the last call that the limit of %s allows completes the turn", async (_, budget) => {
    const { agent } = await opened([calling(submits("the plan")), "own"], { tools: [submit()], budget });
    expect(await agent.executeTurn("go").result).toMatchObject({ status: "completed", text: "the plan", steps: 1 });
  });

  it("a last call without tools runs none that would end the turn", async () => {
    const ran: string[] = [];
    const tools = [submit({ execute: ({ text: given }) => String(ran.push(given)) })];
    const { agent } = await opened([calling(submits("the plan"))], {
      tools,
      budget: { maxSteps: 1, finalAnswer: true },
    });
    expect(await agent.executeTurn("go").result).toMatchObject({ status: "stopped", steps: 1 });
    expect(ran).toEqual([]);
  });

  it("a result that does not fit the output at the limit of steps leaves the turn stopped", async () => {
    const { agent } = await opened([calling(submits("x")), '{"n":1}'], {
      tools: [submit()],
      output: z.object({ n: z.number() }),
      budget: { maxSteps: 1 },
    });
    const result = await agent.executeTurn("go").result;
    expect(result).toMatchObject({ status: "stopped", steps: 1 });
    expect(result.output).toBeUndefined();
  });

  it("its answer is an event with a cursor, before the end, in every reading", async () => {
    const { agent, runtime } = await opened([calling(submits("the plan"), submits("another"))], { tools: [submit()] });
    const live = await eventsOfTurn(agent.executeTurn("go"));
    const types = live.map(({ type }) => type);
    expect(types.filter((type) => type === "turn.answered")).toHaveLength(1);
    const answered = live.find((event) => event.type === "turn.answered");
    expect(answered).toMatchObject({ callId: "a#1:1:0", messageId: "a#1:1:answer", step: 1, turnId: "a#1" });
    expect(answered?.cursor).toMatch(/^\d+\.\d+\.\d+$/);
    expect(types.indexOf("turn.answered")).toBeGreaterThan(types.lastIndexOf("tool.completed"));
    expect(types.indexOf("turn.answered")).toBeLessThan(types.indexOf("turn.completed"));
    const [message] = (await agent.getMessages()).filter(({ id }) => id === "a#1:1:answer");
    expect(message).toMatchObject({ role: "assistant", content: "the plan" });
    const again: TroupeEvent[] = [];
    for await (const event of runtime.follow("a")) {
      again.push(event);
      if (event.type === "turn.completed") break;
    }
    expect(again.filter(({ type }) => type === "turn.answered")).toEqual([answered]);
  });

  it("an abort while the tool runs ends the turn without its result", async () => {
    const gate = createGate();
    const slow = submit({ execute: async (_, run) => gate.pass(run.signal).then(() => "late") });
    const { agent } = await opened([calling(submits("the plan"))], { tools: [slow] });
    const turn = agent.executeTurn("go");
    await gate.reached();
    await turn.abort("enough");
    gate.open();
    const result = await turn.result;
    expect(result).toMatchObject({ status: "stopped", stopReason: "user_requested" });
    expect(result.text).not.toContain("late");
    expect((await agent.getMessages()).map(({ id }) => id)).not.toContain("a#1:1:answer");
  });
});

const desk = (...script: readonly ScriptedAnswer[]) =>
  defineAgent({ name: "desk", model: scriptedModel([...script]), tools: [submit()] });

it("replays, and forks before the call, in its place and after the turn", async () => {
  const stores = memoryStores();
  const origin = desk(calling(submits("the plan")));
  const runtime = await createRuntime({ agents: [origin], stores });
  const agent = await runtime.agent("desk", { agentId: "a" });
  await agent.start();
  await agent.executeTurn("go").result;
  await runtime.shutdown();
  const source = { stores, agentId: "a" };
  expect(await replay(source, { agents: origin })).toMatchObject({ isEqual: true, changed: [] });

  const before = await fork(source, { agents: desk(calling(submits("better"))), at: { turn: 1, step: 1 } });
  expect(await before.turn.result).toMatchObject({ status: "completed", text: "better", steps: 1 });
  await before.close();

  const after = await fork(source, { agents: desk("next"), at: { turn: 1 }, input: "and now?" });
  expect(await after.turn.result).toMatchObject({ status: "completed", text: "next" });
  expect((await after.agent.getMessages()).map(({ content }) => content)).toEqual([
    "go",
    "",
    "the plan",
    "the plan",
    "and now?",
    "next",
  ]);
  await after.close();
});
