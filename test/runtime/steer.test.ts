import { expect, it } from "vitest";
import {
  type Agent,
  type Hooks,
  createAgentLoop,
  defineAgent,
  defineTool,
  InvalidInputError,
  type ModelRequest,
  type Runtime,
  type SteerAnswer,
  textOf,
  TurnConflictError,
  UnsupportedError,
} from "../../src/index.ts";
import { armFaultPoints } from "../../src/base/index.ts";
import { type ScriptedAnswer, scriptedModel } from "../../src/testing/index.ts";
import { z } from "zod";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate, eventsOfTurn } from "../support/turn-probes.ts";

const textsOf = ({ messages }: ModelRequest): string[] =>
  messages.filter(({ role }) => role !== "system").map(({ role, content }) => `${role}: ${textOf(content)}`);

interface Cast {
  /** By call of the model, from 1. */
  readonly answers: readonly ScriptedAnswer[];
  readonly hooks?: Hooks;
  readonly instructions?: () => Promise<string>;
  /** Called before the tokens of a prompt are counted, for turns with a limit on tokens. */
  readonly onCount?: () => Promise<void>;
}

/** Models and tools wait at their gate, by the number of the call. */
function cast({ answers, onCount, ...rest }: Cast) {
  const asked = answers.map(() => createGate());
  const work = createGate();
  const tool = defineTool({
    name: "work",
    description: "Works.",
    parameters: z.object({}),
    effect: "keyed",
    execute: async () => {
      await work.pass();
      return "worked";
    },
  });
  const approve = defineTool({
    name: "approve",
    description: "Needs a person.",
    parameters: z.object({}),
    effect: "none",
    needsApproval: true,
    execute: () => "approved",
  });
  const model = scriptedModel(async (_request, { signal }) => {
    const index = model.calls.length - 1;
    await asked[index]?.pass(signal);
    return answers[index] ?? "over";
  });
  const countPromptTokens: typeof model.countPromptTokens = async (request) => {
    await onCount?.();
    return await model.countPromptTokens(request);
  };
  const definition = defineAgent({
    name: "clerk",
    model: { ...model, countPromptTokens },
    tools: [tool, approve],
    ...rest,
  });
  const requests = () => model.calls.map(textsOf);
  return { asked, work, requests, definition };
}

async function started(runtime: Runtime): Promise<Agent> {
  const agent = await runtime.agent("clerk", { agentId: "c" });
  await agent.start();
  return agent;
}

/** The turns in the order of their numbers. */
async function statuses(runtime: Runtime): Promise<string[][]> {
  const turns = (await runtime.turns()).toSorted((one, other) => one.number - other.number);
  return turns.map(({ turnId, status }) => [turnId, status]);
}

describeRuntimes("steering a turn", (stage) => {
  async function opened(given: Cast) {
    const people = cast(given);
    const runtime = await stage().open({ agents: [people.definition] });
    return { ...people, runtime, agent: await started(runtime) };
  }

  it("an input during a tool call waits for its result and is seen by the next model call", async () => {
    const { asked, work, requests, agent } = await opened({ answers: [calling("work"), "done"] });
    for (const gate of asked) gate.open();
    const turn = agent.executeTurn("go");
    await work.reached();
    expect(await turn.steer("use blue")).toEqual({ status: "delivered", turnId: "c#1", step: 2 });
    expect(await agent.steer("and red", { auth: undefined })).toMatchObject({ status: "delivered", step: 2 });
    expect(await agent.getMessages()).toHaveLength(2);
    work.open();
    expect(await turn.result).toMatchObject({ status: "completed", text: "done", steps: 2 });
    expect(requests()[1]).toEqual(["user: go", "assistant: ", "tool: worked", "user: use blue", "user: and red"]);
    const events = await eventsOfTurn(agent.turn("c#1"));
    expect(events.filter(({ type }) => type === "turn.steered")).toMatchObject([
      { prompt: "use blue", step: 2, actorId: null },
      { prompt: "and red", step: 2 },
    ]);
  });

  it("an input during the last model call makes the turn go on", async () => {
    const { asked, requests, agent, runtime } = await opened({ answers: ["first answer", "second answer"] });
    const turn = agent.executeTurn("go");
    await asked[0]?.reached();
    expect(await turn.steer("use blue")).toEqual({ status: "delivered", turnId: "c#1", step: 2 });
    for (const gate of asked) gate.open();
    expect(await turn.result).toMatchObject({ status: "completed", text: "second answer", steps: 2 });
    expect(requests()[1]).toEqual(["user: go", "assistant: first answer", "user: use blue"]);
    expect(await statuses(runtime)).toEqual([["c#1", "completed"]]);
  });

  it("without an open turn an input opens one, and for an ended turn it opens the next", async () => {
    const { asked, requests, agent } = await opened({ answers: ["one", "two", "three"] });
    for (const gate of asked) gate.open();
    expect(await agent.steer("go")).toEqual({ status: "queued", turnId: "c#1" });
    await agent.turn("c#1").result;
    expect(await agent.turn("c#1").steer("more")).toEqual({ status: "queued", turnId: "c#2" });
    expect(await agent.turn("c#2").result).toMatchObject({ text: "two" });
    expect(requests()[1]).toEqual(["user: go", "assistant: one", "user: more"]);
  });

  it("an input for an earlier turn is not given to the open one", async () => {
    const { asked, agent } = await opened({ answers: ["one", "two", "three"] });
    asked[0]?.open();
    const first = agent.executeTurn("go");
    await first.result;
    const second = agent.executeTurn("again");
    await asked[1]?.reached();
    expect(await first.steer("late")).toEqual({ status: "queued", turnId: "c#3" });
    for (const gate of asked) gate.open();
    expect(await second.result).toMatchObject({ text: "two", steps: 1 });
    expect(await agent.turn("c#3").result).toMatchObject({ text: "three" });
  });

  it("ifBusy: steer returns the handle of the turn that has the input", async () => {
    const { asked, agent } = await opened({ answers: ["one", "two"] });
    const turn = agent.executeTurn("go", { ifBusy: "steer" });
    await asked[0]?.reached();
    const steered = agent.executeTurn("use blue", { ifBusy: "steer", budget: { maxSteps: 1 }, key: "k" });
    expect(await steered.id).toBe(await turn.id);
    expect(await agent.executeTurn("use blue", { ifBusy: "queue", budget: { maxSteps: 1 }, key: "k" }).id).toBe("c#1");
    for (const gate of asked) gate.open();
    expect(await steered.result).toEqual(await turn.result);
    expect(await turn.result).toMatchObject({ text: "two", steps: 2 });
  });

  it("a key has one answer, during the turn and after its end; another input under it is refused", async () => {
    const { asked, requests, agent, runtime } = await opened({ answers: ["one", "two", "three"] });
    const turn = agent.executeTurn("go", { key: "t" });
    await asked[0]?.reached();
    const delivered = { status: "delivered", turnId: "c#1", step: 2 };
    const answers = await Promise.all([1, 2, 3].map(() => turn.steer("use blue", { key: "k" })));
    expect(answers).toEqual([delivered, delivered, delivered]);
    await expect(turn.steer("use red", { key: "k" })).rejects.toThrow(TurnConflictError);
    await expect(turn.steer("use blue", { key: "k", auth: { actorId: "ann" } })).rejects.toThrow(TurnConflictError);
    await expect(turn.steer("use blue", { key: "t" })).rejects.toThrow(TurnConflictError);
    for (const gate of asked) gate.open();
    await turn.result;
    expect(await turn.steer("use blue", { key: "k" })).toEqual(delivered);
    expect(await turn.steer("more", { key: "l" })).toEqual({ status: "queued", turnId: "c#2" });
    await agent.turn("c#2").result;
    expect(await agent.steer("more", { key: "l" })).toEqual({ status: "queued", turnId: "c#2" });
    await expect(agent.steer("less", { key: "l" })).rejects.toThrow(TurnConflictError);
    expect(
      requests()
        .flat()
        .filter((text) => text === "user: use blue"),
    ).toHaveLength(2);
    expect(await statuses(runtime)).toEqual([
      ["c#1", "completed"],
      ["c#2", "completed"],
    ]);
  });

  it("while the turn waits for a person, an input is kept until the decision", async () => {
    const { asked, requests, agent } = await opened({ answers: [calling("approve"), "done"] });
    for (const gate of asked) gate.open();
    const turn = agent.executeTurn("go");
    const rest = await turn.settled;
    expect(await turn.steer("hurry")).toEqual({ status: "delivered", turnId: "c#1", step: 2 });
    expect(await turn.current()).toEqual(rest);
    for (const { requestId } of await agent.requests()) await agent.decide(requestId, { verdict: "approved" });
    expect(await turn.result).toMatchObject({ text: "done" });
    expect(requests()[1]).toEqual(["user: go", "assistant: ", "tool: approved", "user: hurry"]);
  });

  it("while the turn is paused, an input is kept until it continues", async () => {
    const { asked, work, requests, agent } = await opened({ answers: [calling("work"), "done"] });
    for (const gate of asked) gate.open();
    const turn = agent.executeTurn("go");
    await work.reached();
    const pausing = agent.pause();
    work.open();
    await pausing;
    expect(await turn.steer("hurry")).toEqual({ status: "delivered", turnId: "c#1", step: 2 });
    expect(requests()).toHaveLength(1);
    await agent.resume();
    await turn.result;
    expect(requests()[1]?.at(-1)).toBe("user: hurry");
  });

  it("an input does not raise limits: at the last permitted step it opens the next turn", async () => {
    const { asked, agent, requests } = await opened({ answers: ["one", "two"] });
    const turn = agent.executeTurn("go", { budget: { maxSteps: 1 } });
    await asked[0]?.reached();
    expect(await turn.steer("more")).toEqual({ status: "queued", turnId: "c#2" });
    for (const gate of asked) gate.open();
    expect(await turn.result).toMatchObject({ status: "completed", text: "one", steps: 1 });
    expect(await agent.turn("c#2").result).toMatchObject({ text: "two" });
    expect(requests()[1]).toEqual(["user: go", "assistant: one", "user: more"]);
  });

  it("another actor's input opens the next turn, because a turn has the credentials of one actor", async () => {
    const seen: unknown[] = [];
    const { asked, agent, runtime } = await opened({
      answers: ["one", "two", "three"],
      hooks: { afterUserInput: (draft, run) => void seen.push([draft.input, run.actorId, run.auth?.credentials]) },
    });
    const turn = agent.executeTurn("go", { auth: { actorId: "ann", credentials: "of ann" } });
    await asked[0]?.reached();
    expect(await turn.steer("mine", { auth: { actorId: "ann" } })).toMatchObject({ status: "delivered" });
    const queued = await turn.steer("theirs", { auth: { actorId: "bob", credentials: "of bob" } });
    expect(queued).toEqual({ status: "queued", turnId: "c#2" });
    for (const gate of asked) gate.open();
    await agent.turn("c#2").result;
    const origins = (await agent.getMessages()).filter(({ role }) => role === "user").map(({ origin }) => origin);
    expect(origins).toEqual(["ann", "ann", "bob"]);
    expect(seen).toEqual([
      ["go", "ann", "of ann"],
      ["mine", "ann", "of ann"],
      ["theirs", "bob", "of bob"],
    ]);
    expect(await statuses(runtime)).toHaveLength(2);
  });

  it("an input that no model call has seen opens a turn, unless a person ended the turn", async () => {
    const { asked, work, requests, agent, runtime } = await opened({
      answers: [calling("work"), "two", "three"],
      hooks: { afterTools: (draft) => draft.stop("enough") },
    });
    for (const gate of asked) gate.open();
    const turn = agent.executeTurn("go");
    await work.reached();
    const answer = await turn.steer("use blue", { key: "k" });
    work.open();
    expect(await turn.result).toMatchObject({ status: "stopped" });
    expect(await agent.turn("c#2").result).toMatchObject({ status: "completed", text: "two" });
    expect(requests()[1]).toContain("user: use blue");
    expect((await agent.getMessages()).filter(({ content }) => content === "use blue")).toHaveLength(1);
    expect(await agent.steer("use blue", { key: "k" })).toEqual(answer);
    expect(await statuses(runtime)).toHaveLength(2);
  });

  it("an aborted turn keeps the input in the conversation and opens no other turn", async () => {
    const { asked, work, requests, agent, runtime } = await opened({ answers: [calling("work"), "two"] });
    for (const gate of asked) gate.open();
    const turn = agent.executeTurn("go");
    await work.reached();
    await turn.steer("use blue");
    await turn.abort();
    work.open();
    await turn.result;
    expect(await statuses(runtime)).toEqual([["c#1", "stopped"]]);
    await agent.executeTurn("next").result;
    expect(requests()[1]).toContain("user: use blue");
  });

  it("afterUserInput hooks see the input before the model does, and may stop the turn", async () => {
    const seen: string[] = [];
    const { asked, work, requests, agent } = await opened({
      answers: [calling("work"), "two"],
      hooks: {
        afterUserInput: (draft) => {
          seen.push(draft.input);
          draft.add({ role: "system", content: `checked: ${draft.input}` });
          if (draft.input.includes("forbidden")) draft.stop("not allowed");
        },
      },
    });
    for (const gate of asked) gate.open();
    const turn = agent.executeTurn("go");
    await work.reached();
    await turn.steer("use blue");
    await turn.steer("a forbidden thing");
    work.open();
    expect(await turn.result).toMatchObject({ status: "stopped", stopReason: "stop_requested" });
    expect(seen).toEqual(["go", "use blue", "a forbidden thing"]);
    expect(requests()).toHaveLength(1);
  });

  it("beforeLlm hooks see an input before the model does: one that arrives after them waits for the next step", async () => {
    const inHook = createGate();
    const hooked: string[][] = [];
    const { asked, requests, agent } = await opened({
      answers: ["one", "two"],
      hooks: {
        beforeLlm: async (draft) => {
          hooked.push(draft.messages.map(({ content }) => textOf(content)));
          await inHook.pass();
        },
      },
    });
    for (const gate of asked) gate.open();
    const turn = agent.executeTurn("go");
    await inHook.reached();
    expect(await turn.steer("late")).toMatchObject({ status: "delivered", step: 2 });
    inHook.open();
    expect(await turn.result).toMatchObject({ text: "two" });
    expect(requests()).toEqual([["user: go"], ["user: go", "assistant: one", "user: late"]]);
    expect(hooked[1]).toContain("late");
  });

  it("an input while beforeLlm hooks of the last permitted step run opens the next turn", async () => {
    const inHook = createGate();
    const { asked, requests, agent } = await opened({
      answers: ["one", "two"],
      hooks: { beforeLlm: () => inHook.pass() },
    });
    for (const gate of asked) gate.open();
    const turn = agent.executeTurn("go", { budget: { maxSteps: 1 } });
    await inHook.reached();
    expect(await turn.steer("late")).toEqual({ status: "queued", turnId: "c#2" });
    inHook.open();
    expect(await turn.result).toMatchObject({ status: "completed", text: "one" });
    expect(await agent.turn("c#2").result).toMatchObject({ text: "two" });
    expect(requests()[0]).toEqual(["user: go"]);
  });

  it("the prompt is made again for an input that arrives while its tokens are counted", async () => {
    const counting = createGate();
    const { asked, requests, agent } = await opened({ answers: ["one", "two"], onCount: () => counting.pass() });
    for (const gate of asked) gate.open();
    const turn = agent.executeTurn("go", { budget: { maxTokens: 100_000 } });
    await counting.reached();
    expect(await turn.steer("use blue")).toEqual({ status: "delivered", turnId: "c#1", step: 1 });
    counting.open();
    expect(await turn.result).toMatchObject({ status: "completed", text: "one", steps: 1 });
    expect(requests()).toEqual([["user: go", "user: use blue"]]);
  });

  it("beforeLlm hooks and the model see an input that arrives while the instructions are resolved", async () => {
    const resolving = createGate<string>();
    const hooked: string[][] = [];
    const { asked, requests, agent } = await opened({
      answers: ["one", "two"],
      instructions: () => resolving.pass(),
      hooks: { beforeLlm: (draft) => void hooked.push(draft.messages.map(({ content }) => textOf(content))) },
    });
    for (const gate of asked) gate.open();
    const turn = agent.executeTurn("go");
    await resolving.reached();
    expect(await turn.steer("use blue")).toEqual({ status: "delivered", turnId: "c#1", step: 1 });
    resolving.open("Paint.");
    expect(await turn.result).toMatchObject({ status: "completed", text: "one", steps: 1 });
    expect(hooked).toEqual([["go", "use blue"]]);
    expect(requests()).toEqual([["user: go", "user: use blue"]]);
  });

  it("wrong inputs and options are refused before anything is stored", async () => {
    const { asked, agent, runtime } = await opened({ answers: ["one"] });
    const turn = agent.executeTurn("go");
    await asked[0]?.reached();
    for (const input of [null, 7, [], [{ type: "image", url: "file:///x" }], [{ type: "file", artifactId: "none" }]]) {
      await expect(turn.steer(input as unknown as string), JSON.stringify(input)).rejects.toThrow(InvalidInputError);
    }
    for (const options of [{ key: "a b" }, { auth: {} }, { budget: { maxSteps: 1 } }, 7]) {
      await expect(agent.steer("go", options as object), JSON.stringify(options)).rejects.toThrow(InvalidInputError);
    }
    await expect(agent.executeTurn(null, { ifBusy: "steer" }).id).rejects.toThrow("not null");
    expect(await stage().look().inbox({ tenant: "default", agentId: "c" })).toEqual([]);
    asked[0]?.open();
    expect(await turn.result).toMatchObject({ steps: 1 });
    expect(await statuses(runtime)).toHaveLength(1);
  });

  it("an accepted input survives the death of its process at any commit, and is taken in once", async () => {
    for (const point of ["commit.before", "commit.after", "commit.acknowledged", "turn.opened"]) {
      const agentId = `dies-${point}`;
      const first = cast({ answers: [calling("work"), "lost"] });
      for (const gate of first.asked) gate.open();
      const process = await stage().openProcess({ agents: [first.definition] });
      const agent = await process.runtime.agent("clerk", { agentId });
      await agent.start();
      await agent.executeTurn("go").id;
      await first.work.reached();
      const killed = Promise.withResolvers<void>();
      const disarm = armFaultPoints([{ name: point, hit: 1, action: () => (process.kill(), killed.resolve()) }]);
      agent.steer("use blue", { key: "k" }).catch(() => undefined);
      await killed.promise;
      disarm();
      stage().expireLeases();
      const next = cast({ answers: ["done"] });
      next.asked[0]?.open();
      next.work.open();
      const runtime = await stage().open({ agents: [next.definition] });
      const there = await runtime.agent("clerk", { agentId });
      await there.start();
      const answer = await there.steer("use blue", { key: "k" });
      await there.turn(answer.turnId).result;
      const inputs = (await there.getMessages()).filter(({ content }) => content === "use blue");
      expect(inputs, point).toHaveLength(1);
      expect(await there.steer("use blue", { key: "k" }), point).toEqual(answer);
      await runtime.shutdown();
    }
  });

  it("an input that races with the turn's end is in one turn, whichever commit comes first", async () => {
    for (let hit = 1; hit <= 12; hit += 1) {
      const people = cast({ answers: ["one", "two", "three"] });
      for (const gate of people.asked) gate.open();
      const runtime = await stage().open({ agents: [people.definition] });
      const agent = await runtime.agent("clerk", { agentId: `race-${hit}` });
      await agent.start();
      const point = ["commit.before", "commit.after", "commit.acknowledged"][hit % 3] ?? "";
      const sent = Promise.withResolvers<SteerAnswer>();
      const action = (): void => void agent.steer("use blue").then(sent.resolve, sent.reject);
      const disarm = armFaultPoints([{ name: point, hit: Math.ceil(hit / 3), action }]);
      const turn = agent.executeTurn("go");
      await turn.result;
      disarm();
      // A point that was not reached: the turn has ended before.
      action();
      const { turnId } = await sent.promise;
      await agent.turn(turnId).result;
      const seen = people.requests().filter((texts) => texts.at(-1) === "user: use blue");
      expect(seen.length, `${hit}`).toBeGreaterThan(0);
      await runtime.shutdown();
    }
  });
});

describeRuntimes(
  "steering from another process",
  (stage) => {
    it("another process delivers an input to the turn, and the same key from both is one input", async () => {
      const { asked, work, requests, definition } = cast({ answers: [calling("work"), "done"] });
      const agent = await started(await stage().open({ agents: [definition] }));
      for (const gate of asked) gate.open();
      const turn = agent.executeTurn("go");
      await work.reached();
      const other = await stage().open({ agents: [cast({ answers: [] }).definition] });
      const there = await other.agent("clerk", { agentId: "c" });
      const answers: Promise<SteerAnswer>[] = [
        there.steer("use blue", { key: "k" }),
        agent.steer("use blue", { key: "k" }),
      ];
      const delivered = { status: "delivered", turnId: "c#1", step: 2 };
      expect(await Promise.all(answers)).toEqual([delivered, delivered]);
      work.open();
      await turn.result;
      expect(requests()[1]?.filter((text) => text === "user: use blue")).toHaveLength(1);
    });
  },
  ["sqlite"],
);

it("a turn of the stateless loop takes no input", async () => {
  const loop = createAgentLoop(defineAgent({ name: "talker", model: scriptedModel("hello") }));
  const turn = loop.executeTurn([{ role: "user", content: "hi" }]);
  await expect(turn.steer("more")).rejects.toThrow(UnsupportedError);
  await turn.result;
});
