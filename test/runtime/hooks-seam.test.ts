import { expect, it } from "vitest";
import { z } from "zod";
import {
  type Agent,
  type AgentOptions,
  defineAgent,
  defineTool,
  textOf,
  type Message,
  ModelError,
} from "../../src/index.ts";
import { type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { elapse, entriesOfType, orderFault } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling } from "../support/turn-probes.ts";

const noop = defineTool({
  name: "noop",
  description: "Does nothing.",
  parameters: z.object({}),
  effect: "none",
  execute: () => "done",
});

const textsOf = (messages: readonly Message[] = []): string[] => messages.map(({ content }) => textOf(content));

describeRuntimes("hooks", (stage) => {
  async function started(script: ModelScript, options: Partial<AgentOptions>) {
    const model = scriptedModel(script);
    const runtime = await stage().open({ agents: [defineAgent({ name: "worker", ...options, model })] });
    const agent: Agent = await runtime.agent("worker", { agentId: "worker-1" });
    await agent.start();
    return { agent, model };
  }

  it("H3: edits and removals by beforeLlm apply to that call only", async () => {
    let calls = 0;
    const { agent, model } = await started(["first", "second", "third"], {
      hooks: {
        beforeLlm(draft) {
          calls += 1;
          if (calls !== 2) return;
          const [first, second] = draft.messages;
          if (first) draft.edit(first.id, "EDITED");
          if (second) draft.remove(second.id);
        },
      },
    });
    for (const prompt of ["one", "two", "three"]) await agent.executeTurn(prompt).result;
    expect(textsOf(model.calls[1]?.messages)).toEqual(["EDITED", "two"]);
    expect(textsOf(model.calls[2]?.messages)).toEqual(["one", "first", "two", "second", "three"]);
    expect(textsOf(await agent.getMessages())).toEqual(["one", "first", "two", "second", "three", "third"]);
  });

  it("H2: added messages enter history with the plugin's name as their origin", async () => {
    const { agent, model } = await started(["first", "second"], {
      plugins: [
        {
          name: "memo",
          hooks: { beforeLlm: (draft, { step }) => draft.add({ role: "system", content: `memo at step ${step}` }) },
        },
      ],
    });
    await agent.executeTurn("one").result;
    await agent.executeTurn("two").result;
    expect(textsOf(model.calls[1]?.messages)).toEqual(["one", "memo at step 1", "first", "two", "memo at step 1"]);
    const added = (await agent.getMessages()).filter(({ origin }) => origin === "hook:memo");
    expect(added.map(({ role, metadata }) => [role, metadata?.is_trace, metadata?.execution_id])).toEqual([
      ["system", true, "worker-1#1"],
      ["system", true, "worker-1#2"],
    ]);
    // Messages added by a step are hidden in the conversation that a person reads (row S4).
    expect(textsOf(await agent.getMessages({ withoutTrace: true }))).toEqual(["one", "first", "two", "second"]);
  });

  it("H1: hooks run in the order of registration, the agent's own first; each sees the additions of earlier ones", async () => {
    const order: string[] = [];
    const note = (name: string) => (draft: { readonly messages: readonly Message[] }) => {
      order.push(`${name} saw ${draft.messages.length}`);
    };
    const { agent } = await started([calling("noop"), "the end"], {
      tools: [noop],
      hooks: {
        beforeLlm: [
          (draft) => {
            note("own 0")(draft);
            draft.add({ role: "user", content: "added" });
          },
          note("own 1"),
        ],
        afterTools: note("own after"),
      },
      plugins: [
        { name: "a", hooks: { beforeLlm: note("a"), afterTools: [note("a after 0"), note("a after 1")] } },
        { name: "b", hooks: { beforeLlm: note("b") } },
      ],
    });
    await agent.executeTurn("go").result;
    expect(order).toEqual([
      "own 0 saw 1",
      "own 1 saw 2",
      "a saw 2",
      "b saw 2",
      "own after saw 4",
      "a after 0 saw 4",
      "a after 1 saw 4",
      "own 0 saw 4",
      "own 1 saw 5",
      "a saw 5",
      "b saw 5",
    ]);
  });

  it("afterTools runs once per round, after all results, and its additions follow them", async () => {
    const rounds: string[][] = [];
    const { agent, model } = await started([calling("noop", "noop", "noop"), calling("noop"), "the end"], {
      tools: [noop],
      hooks: {
        afterTools(draft, { step }) {
          rounds.push(draft.messages.filter(({ role }) => role === "tool").map(({ id }) => id));
          draft.add({ role: "user", content: `round ${step} is over` });
        },
      },
    });
    const result = await agent.executeTurn("go").result;
    expect(result).toMatchObject({ status: "completed", text: "the end", steps: 3 });
    expect(rounds.map((ids) => ids.length)).toEqual([3, 4]);
    expect(textsOf(model.calls[1]?.messages).at(-1)).toBe("round 1 is over");
    for (const { messages } of model.calls) expect(orderFault(messages)).toBeUndefined();
  });

  it("a committed hook is not called again when its model call is retried", async () => {
    let hooked = 0;
    let asked = 0;
    const overloaded = new ModelError("overloaded", { retryable: true, status: 503, mayHaveBeenSent: true });
    const { agent, model } = await started((_request, { index }) => (index < 2 ? { error: overloaded } : "at last"), {
      instructions: () => `instructions ${(asked += 1)}`,
      hooks: {
        beforeLlm(draft) {
          hooked += 1;
          const [first] = draft.messages;
          if (first) draft.edit(first.id, `edited ${hooked}`);
        },
      },
    });
    const result = await elapse(stage().clock, agent.executeTurn("go").result);
    expect(result.text).toBe("at last");
    expect(model.calls).toHaveLength(3);
    expect([hooked, asked]).toEqual([1, 1]);
    for (const { messages } of model.calls) expect(textsOf(messages)).toEqual(["instructions 1", "edited 1"]);
  });

  it("an instructions function is called once per turn and its result journalled", async () => {
    const asked: unknown[] = [];
    const { agent, model } = await started([calling("noop"), "one", "two"], {
      tools: [noop],
      instructions(context) {
        asked.push(context);
        return `You serve turn ${asked.length}.`;
      },
    });
    await agent.executeTurn("go", { auth: { actorId: "mia" } }).result;
    await agent.executeTurn("again").result;
    const systemOf = (index: number) => textsOf(model.calls[index]?.messages)[0];
    expect([systemOf(0), systemOf(1), systemOf(2)]).toEqual([
      "You serve turn 1.",
      "You serve turn 1.",
      "You serve turn 2.",
    ]);
    expect(asked).toEqual([
      { agentId: "worker-1", turnId: "worker-1#1", actorId: "mia", metadata: {} },
      { agentId: "worker-1", turnId: "worker-1#2", actorId: null, metadata: {} },
    ]);
    const resolved = await entriesOfType(stage().look(), "worker-1", "instructions.resolved");
    expect(resolved.map(({ text }) => text)).toEqual(["You serve turn 1.", "You serve turn 2."]);
  });
});
