import { expect, it } from "vitest";
import { z } from "zod";
import {
  type AgentOptions,
  type CallSettings,
  createAgentLoop,
  defineAgent,
  defineTool,
  InvalidInputError,
  type ModelRequest,
  run,
  subagent,
  summarize,
} from "../../src/index.ts";
import { SentPrompts } from "../../src/context/sent-prompts.ts";
import type { ModelCallIdentity } from "../../src/model/index.ts";
import { type ScriptedModel, scriptedModel } from "../../src/testing/index.ts";
import { classicValues, isTaken } from "../support/wrong-values.ts";
import { entriesOf, entriesOfType } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { calling, createGate } from "../support/turn-probes.ts";

const look = defineTool({
  name: "look",
  description: "Looks.",
  parameters: z.object({}),
  effect: "none",
  execute: () => "seen",
});

/** Calls the tool once, then answers. */
const lookingModel = () =>
  scriptedModel(({ messages }) => (messages.at(-1)?.role === "tool" ? "done" : calling("look")));

const everything = {
  temperature: 0.5,
  maxOutputTokens: 900,
  stopSequences: ["END"],
  reasoningEffort: "high",
  toolChoice: "auto",
  providerOptions: { scripted: { seed: 7 } },
} as const satisfies CallSettings;

const settingsOf = ({ messages: _messages, tools: _tools, ...rest }: ModelRequest) => rest;
const sentTo = (model: ScriptedModel) => model.calls.map(settingsOf);

describeRuntimes("settings of model calls", (stage) => {
  const startedWith = async (options: Partial<AgentOptions>, model = lookingModel()) => {
    const definition = defineAgent({ name: "desk", tools: [look], ...options, model });
    const runtime = await stage().open({ agents: [definition] });
    const agent = await runtime.agent("desk", { agentId: "a" });
    await agent.start();
    return { model, agent, definition };
  };

  it("those of the definition are sent with every call of a step", async () => {
    const { model, agent } = await startedWith(everything);
    await agent.executeTurn("go").result;
    expect(sentTo(model)).toEqual([everything, everything]);
  });

  it("those of a turn replace them for this turn, and options of a provider field by field", async () => {
    const { model, agent } = await startedWith({
      temperature: 1,
      stopSequences: ["END"],
      providerOptions: { scripted: { seed: 7, tier: "flex" } },
    });
    await agent.executeTurn("go", { settings: { temperature: 0, providerOptions: { scripted: { seed: 8 } } } }).result;
    await agent.executeTurn("again").result;
    const own = { temperature: 1, stopSequences: ["END"] };
    const changed = { ...own, temperature: 0, providerOptions: { scripted: { seed: 8, tier: "flex" } } };
    const usual = { ...own, providerOptions: { scripted: { seed: 7, tier: "flex" } } };
    expect(sentTo(model)).toEqual([changed, changed, usual, usual]);
  });

  it("hooks change those of the next call, in order, and see what earlier ones have set", async () => {
    const seen: CallSettings[] = [];
    const { model, agent } = await startedWith({
      temperature: 1,
      hooks: {
        beforeLlm: [
          (draft) => {
            const isFirst = draft.messages.length === 1;
            draft.set({ reasoningEffort: isFirst ? "high" : "low", providerOptions: { scripted: { a: 1 } } });
          },
          (draft) => {
            seen.push(draft.settings);
            expect(draft.tools).toEqual(["look"]);
            if (draft.settings.reasoningEffort === "high") draft.set({ temperature: 0, maxOutputTokens: 300 });
            draft.set({ providerOptions: { scripted: { b: 2 } } });
          },
        ],
      },
    });
    await agent.executeTurn("go", { settings: { maxOutputTokens: 500 } }).result;
    const providerOptions = { scripted: { a: 1, b: 2 } };
    expect(sentTo(model)).toEqual([
      { temperature: 0, maxOutputTokens: 300, reasoningEffort: "high", providerOptions },
      { temperature: 1, maxOutputTokens: 500, reasoningEffort: "low", providerOptions },
    ]);
    expect(seen[0]).toMatchObject({ temperature: 1, maxOutputTokens: 500, reasoningEffort: "high" });
  });

  it("maxOutputTokens of a hook is what is reserved", async () => {
    const { agent, model } = await startedWith(
      { hooks: { beforeLlm: (draft) => draft.set({ maxOutputTokens: 700 }) }, budget: { maxTokens: 5_000 } },
      scriptedModel("done"),
    );
    await agent.executeTurn("go", { settings: { reasoningEffort: "max" } }).result;
    expect(model.calls[0]?.maxOutputTokens).toBe(700);
    const [requested] = await entriesOfType(stage().look(), "a", "model.requested");
    expect(requested).toMatchObject({ ask: { outputTokens: 700 }, reservation: { outputTokens: 700 } });
  });

  it("a restart sends the same: the turn's settings and those of hooks come from the journal", async () => {
    const hold = createGate<string>();
    let hooked = 0;
    const definition = (model: ScriptedModel) =>
      defineAgent({
        name: "desk",
        model,
        hooks: { beforeLlm: (draft) => draft.set({ stopSequences: [`hook ${(hooked += 1)}`] }) },
      });
    const first = scriptedModel(() => hold.pass());
    const doomed = await stage().openProcess({ agents: [definition(first)] });
    const before = await doomed.runtime.agent("desk", { agentId: "a" });
    await before.start();
    before.executeTurn("go", { settings: { reasoningEffort: "low" } });
    await hold.reached();
    doomed.kill();
    stage().expireLeases();
    const second = scriptedModel("done");
    const survivor = await stage().open({ agents: [definition(second)] });
    await survivor.recover();
    const agent = await survivor.find("a");
    expect((await agent.turn("a#1").result).text).toBe("done");
    hold.open("late");
    expect(sentTo(second)).toEqual(sentTo(first));
    expect(sentTo(second)).toEqual([{ reasoningEffort: "low", stopSequences: ["hook 1"] }]);
  });

  it.each(["required", { tool: "look" }] as const)(
    "toolChoice %j forces a call in the first step only",
    async (choice) => {
      const { model, agent } = await startedWith({ toolChoice: choice });
      const result = await agent.executeTurn("go").result;
      expect(result).toMatchObject({ status: "completed", text: "done" });
      expect(model.calls.map(({ toolChoice }) => toolChoice)).toEqual([choice, undefined]);
      await agent.executeTurn("go", { settings: { toolChoice: "none" } }).result;
      expect(model.calls.slice(2).map(({ toolChoice }) => toolChoice)).toEqual(["none", "none"]);
    },
  );

  it("a hook forces a call in any step", async () => {
    const { model, agent } = await startedWith({
      hooks: {
        beforeLlm: (draft) => draft.set({ toolChoice: draft.messages.length === 1 ? "auto" : { tool: "look" } }),
      },
    });
    await agent.executeTurn("go").result;
    expect(model.calls.map(({ toolChoice }) => toolChoice)).toEqual(["auto", { tool: "look" }]);
  });

  it("a tool that a subagent was not granted is not forced", async () => {
    const model = scriptedModel("done");
    const child = defineAgent({ name: "child", model, tools: [look], toolChoice: { tool: "look" } });
    const lead = defineAgent({
      name: "lead",
      model: scriptedModel(({ messages }) =>
        messages.at(-1)?.role === "tool" ? "done" : calling({ name: "child", arguments: { input: "go" } }),
      ),
      tools: [subagent(child, { policy: { deniedTools: ["look"] } })],
    });
    const runtime = await stage().open({ agents: [lead] });
    const agent = await runtime.agent("lead", { agentId: "l" });
    await agent.start();
    await agent.executeTurn("go").result;
    expect(model.calls).toHaveLength(1);
    expect(model.calls[0]?.toolChoice).toBeUndefined();
  });

  it("the last call of a budget cannot be forced to call a tool", async () => {
    const { model, agent } = await startedWith(
      {
        toolChoice: "required",
        budget: { maxSteps: 1, finalAnswer: true },
      },
      scriptedModel("done"),
    );
    await agent.executeTurn("go").result;
    expect(model.calls[0]?.toolChoice).toBe("none");
  });

  it("the prompts that are rebuilt from the journal have the settings that were sent", async () => {
    const { model, agent, definition } = await startedWith({
      ...everything,
      toolChoice: "required",
      hooks: { beforeLlm: (draft) => draft.set({ temperature: draft.messages.length }) },
    });
    await agent.executeTurn("go", { settings: { reasoningEffort: "minimal" } }).result;
    const sent = new SentPrompts({
      agent: { agentId: "a", grantedTools: null },
      entries: await entriesOf(stage().look(), "a"),
      messages: await agent.getMessages(),
      definitions: new Map([[definition.ref.hash, definition.stored]]),
    });
    const rebuilt = sent.calls.map(({ seq }) => sent.prompt(seq)?.request);
    expect(rebuilt.map((request) => request && settingsOf(request))).toEqual(sentTo(model));
    expect(rebuilt[0]).toMatchObject({ temperature: 1, reasoningEffort: "minimal", toolChoice: "required" });
  });

  it("every call names the agent, the turn and the step that it is for", async () => {
    const calls: (ModelCallIdentity | undefined)[] = [];
    const model = scriptedModel(({ messages }, { call }) => {
      calls.push(call);
      return messages.at(-1)?.role === "user" && messages.length === 1 ? calling("ask") : "done";
    });
    const ask = defineTool({
      name: "ask",
      description: "Asks.",
      parameters: z.object({}),
      effect: "none",
      execute: async (_input, { generate }) => {
        await generate({
          messages: [
            { role: "user", content: "one" },
            { role: "user", content: "two" },
          ],
        });
        return "asked";
      },
    });
    const { agent } = await startedWith(
      { tools: [ask], autoCompact: { strategy: summarize({ keep: 1 }) }, maxMessages: 3 },
      model,
    );
    await agent.executeTurn("go").result;
    await agent.executeTurn("go on").result;
    const who = { agentId: "a", rootAgentId: "a", agentName: "desk", attempt: 1 };
    expect(calls.slice(0, 3)).toEqual([
      { ...who, turnId: "a#1", step: 1 },
      { ...who, turnId: "a#1", step: 1 },
      { ...who, turnId: "a#1", step: 2 },
    ]);
    expect(calls.slice(3)).toEqual(calls.slice(3).map(() => ({ ...who, turnId: "a#2", step: 1 })));
    // The summary and the answer.
    expect(calls.slice(3)).toHaveLength(2);
  });
});

it("an attempt is numbered", async () => {
  const attempts: (number | undefined)[] = [];
  const model = scriptedModel((_request, { call }) => {
    attempts.push(call?.attempt);
    return attempts.length < 2 ? { finishReason: "error" as never } : "done";
  });
  expect((await run(defineAgent({ name: "desk", model }), "go")).text).toBe("done");
  expect(attempts).toEqual([1, 2]);
});

it("run() and the stateless loop take settings", async () => {
  const model = scriptedModel("done");
  const definition = defineAgent({ name: "desk", model });
  await run(definition, "go", { settings: { temperature: 0.1 } });
  const loop = createAgentLoop(definition);
  await loop.executeTurn([{ role: "user", content: "go" }], { settings: { reasoningEffort: "none" } }).result;
  expect(sentTo(model)).toEqual([{ temperature: 0.1 }, { reasoningEffort: "none" }]);
  for (const value of classicValues()) {
    await isTaken("settings", () => run(definition, "go", { settings: value as never }));
    await isTaken(
      "settings",
      () => loop.executeTurn([{ role: "user", content: "go" }], { settings: value as never }).result,
    );
  }
});

const define = (options: Partial<AgentOptions>) => () =>
  defineAgent({ name: "desk", model: scriptedModel(""), tools: [look], ...options });

it("a definition names a tool that it has", () => {
  expect(define({ toolChoice: { tool: "see" } })).toThrow(
    new InvalidInputError('agent "desk": toolChoice: there is no tool "see"; the tools are look'),
  );
  expect(define({ toolChoice: { tool: "look", name: "x" } as never })).toThrow(
    'expected "auto", "none", "required" or',
  );
  expect(define({ reasoningEffort: "hard" as never })).toThrow('reasoningEffort is the text "hard"');
  expect(define({ settings: {} } as never)).toThrow("each as an option");
});

it("settings of a definition are copies, part of its hash, and absent when they are not set", () => {
  const stopSequences = ["END"];
  const model = scriptedModel("");
  const plain = defineAgent({ name: "desk", model });
  const set = defineAgent({ name: "desk", model, stopSequences });
  stopSequences.push("more");
  expect(set.stopSequences).toEqual(["END"]);
  expect(set.stored.stopSequences).toEqual(["END"]);
  expect(set.ref.hash).not.toBe(plain.ref.hash);
  expect(Object.keys(plain.stored)).not.toContain("stopSequences");
});
