import { expect, it } from "vitest";
import { z } from "zod";
import { SentPrompts, type StoredConversation } from "../../src/context/sent-prompts.ts";
import {
  type Agent,
  type AgentOptions,
  defineAgent,
  defineTool,
  dropOldest,
  type HistoryCompiler,
  type Message,
  ModelError,
  reactHistory,
  subagent,
  elideResults,
  toolResult,
  windowHistory,
} from "../../src/index.ts";
import { type ModelScript, type ScriptedModel, scriptedModel } from "../../src/testing/index.ts";
import { entriesOfType } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { agentsOf, conversationOf } from "../support/stored-programs.ts";
import { calling, createGate } from "../support/turn-probes.ts";

const look = defineTool({
  name: "look",
  description: "Looks.",
  parameters: z.object({ at: z.string().optional() }),
  effect: "none",
  execute: ({ at }) => (at === "much" ? "x".repeat(40_000) : "seen"),
});

/** Calls the tool once in each turn, then answers. */
const working: ModelScript = ({ messages, tools }) =>
  messages.at(-1)?.role === "tool" || !tools ? "done" : calling("look");

describeRuntimes("a rebuilt prompt", (stage) => {
  async function played(
    options: Partial<AgentOptions>,
    { prompts = ["one", "two"], script = working, before }: PlayOptions = {},
  ): Promise<{ readonly model: ScriptedModel; readonly stored: StoredConversation; readonly agent: Agent }> {
    const model = scriptedModel(script, { contextWindow: 20_000 });
    const definition = defineAgent({ name: "desk", tools: [look], ...options, model });
    const runtime = await stage().open({ agents: [definition] });
    const agent = await runtime.agent("desk", { agentId: "desk" });
    await agent.start();
    for (const prompt of prompts) await agent.executeTurn(prompt, before).result;
    return { model, agent, stored: await storedOf(runtime.stores, "desk") };
  }

  const cases: readonly (readonly [name: string, options: Partial<AgentOptions>, play?: PlayOptions])[] = [
    ["nothing but messages", { tools: [] }, { script: "ok" }],
    ["fixed instructions and tools", { instructions: "Answer." }],
    ["instructions of a function", { instructions: ({ turnId }) => `Answer in ${turnId}.` }],
    [
      "parameters",
      { temperature: 0.3, maxOutputTokens: 300, responseFormat: { type: "json" }, budget: { maxTokens: 50_000 } },
    ],
    ["an output bound set by a limit", { budget: { maxTokens: 9_000 } }],
    [
      "the schema of the answer, and its repair",
      { tools: [], output: z.object({ n: z.number() }) },
      { script: ({ messages }) => (messages.length % 2 === 0 ? '{"n":1}' : "no") },
    ],
    ["a window", { history: windowHistory(3) }, { prompts: ["a", "b", "c", "d"] }],
    [
      "a window that moves with each message",
      { history: windowHistory(3, { upTo: 3 }) },
      { prompts: ["a", "b", "c", "d"] },
    ],
    [
      "old results that are no longer shown",
      { history: elideResults({ keepRounds: 1, overCharacters: 3 }) },
      { prompts: ["a", "b", "c", "d"] },
    ],
    ["tools on the own context", { history: reactHistory({ contextWindowSize: 2, expandBy: 1 }) }],
    [
      "edits of hooks",
      {
        hooks: {
          beforeLlm: (draft) => {
            const [first, second] = draft.messages;
            if (first) draft.edit(first.id, "edited");
            if (second && draft.messages.length > 3) draft.remove(second.id);
            draft.add({ role: "user", content: "and this" });
          },
        },
      },
    ],
    [
      "an excerpt, after which one more tool is available",
      {},
      {
        script: ({ messages }) =>
          messages.at(-1)?.role === "tool" ? "done" : { toolCalls: [{ name: "look", arguments: { at: "much" } }] },
      },
    ],
    [
      "the last call of a budget",
      { budget: { maxSteps: 2, finalAnswer: true } },
      { script: ({ toolChoice }) => (toolChoice === "none" ? "what I have" : calling("look")) },
    ],
    [
      "tools of the caller",
      { clientTools: true },
      {
        before: {
          clientTools: [
            { name: "elsewhere", description: "Elsewhere.", parameters: { type: "object", properties: {} } },
          ],
        },
      },
    ],
    [
      "attempts that failed",
      {},
      {
        prompts: ["one"],
        script: [
          { error: new ModelError("busy", { retryable: true, mayHaveBeenSent: false, details: {}, retryAfterMs: 0 }) },
          "ok",
        ],
      },
    ],
  ];

  const named = cases.map(([name, options, play]) => ({ name, options, play }));
  it.each(named)("is complete: $name", async ({ options, play }) => {
    const { model, stored } = await played(options, play);
    const prompts = new SentPrompts(stored);
    const rebuilt = prompts.calls.map(({ seq }) => prompts.prompt(seq));
    expect(rebuilt.map((prompt) => prompt?.check)).toEqual(model.calls.map(() => ({ isExact: true })));
    expect(JSON.parse(JSON.stringify(rebuilt.map((prompt) => prompt?.request)))).toEqual(
      JSON.parse(JSON.stringify(model.calls)),
    );
  });

  const scan = defineTool({
    name: "look",
    description: "Looks.",
    parameters: z.object({}),
    effect: "none",
    execute: (_, run) =>
      toolResult({ content: [{ type: "file", data: dataOf(run.step), mediaType: "application/pdf", name: "a.pdf" }] }),
  });

  it.each<{ readonly name: string; readonly options: Partial<AgentOptions> }>([
    { name: "in a window", options: { history: windowHistory(3) } },
    { name: "that are elided", options: { history: elideResults({ keepRounds: 1, overCharacters: 3 }) } },
    { name: "before a compaction", options: { maxMessages: 9, autoCompact: { strategy: dropOldest({ keep: 4 }) } } },
  ])("names the files of results $name, whose contents are artifacts", async ({ options }) => {
    const { model, stored, agent } = await played({ ...options, tools: [scan] }, { prompts: ["a", "b", "c", "d"] });
    const prompts = new SentPrompts(stored);
    const rebuilt = prompts.calls.map(({ seq }) => prompts.prompt(seq));
    expect(rebuilt.map((prompt) => prompt?.check)).toEqual(rebuilt.map(() => ({ isExact: true })));
    const artifacts = (await agent.getArtifacts()).map(({ artifactId }) => artifactId);
    expect(artifacts).toHaveLength(4);
    const sent = model.calls.flatMap(({ messages }) => messages.flatMap(filesOf));
    expect(sent.length).toBeGreaterThanOrEqual(4);
    expect(sent.map(({ url }) => url)).toEqual(sent.map(() => `data:application/pdf;base64,${dataOf(1)}`));
    const named = rebuilt.flatMap((prompt) => prompt?.request.messages.flatMap(filesOf) ?? []);
    expect(named).toEqual(sent.map(({ url: _url, ...part }) => part));
    expect(new Set(named.map(({ artifactId }) => artifactId))).toEqual(new Set(artifacts));
  });

  it("is complete for children, with their granted tools", async () => {
    const childModel = scriptedModel("read");
    const child = defineAgent({ name: "reader", tools: [look, subagent(leaf())], model: childModel });
    const tool = subagent(child, { policy: { allowedTools: ["look"] } });
    const { stored } = await played(
      { tools: [tool] },
      {
        prompts: ["one"],
        script: ({ messages }) =>
          messages.at(-1)?.role === "tool" ? "done" : { toolCalls: [{ name: "reader", arguments: { input: "it" } }] },
      },
    );
    const [spawned] = stored.entries.filter((entry) => entry.type === "child.spawned");
    const runtime = await stage().open({ agents: [child] });
    const kid = new SentPrompts(await storedOf(runtime.stores, spawned?.childId ?? ""));
    const [prompt] = kid.calls.map(({ seq }) => kid.prompt(seq));
    expect(prompt?.check).toEqual({ isExact: true });
    expect(prompt?.request.tools?.map(({ name }) => name)).toEqual(["look"]);
    expect(JSON.parse(JSON.stringify(prompt?.request))).toEqual(JSON.parse(JSON.stringify(childModel.calls[0])));
  });

  it("names a missing definition, and contains the messages", async () => {
    const { stored } = await played({ instructions: "Answer." });
    const prompts = new SentPrompts({ ...stored, definitions: new Map() });
    const prompt = prompts.prompt(prompts.calls[0]?.seq ?? 0);
    expect(prompt?.check).toMatchObject({ isExact: false, why: "no_definition" });
    expect(prompt?.request.messages.map(({ content }) => content)).toEqual(["one"]);
  });

  it("reports that custom code chose the messages, unless it kept all", async () => {
    const few = new SentPrompts((await played({ tools: [], history: choosing("few", -1) }, { script: "ok" })).stored);
    expect(few.calls.map(({ seq }) => few.prompt(seq)?.check)).toMatchObject([
      { isExact: true },
      { isExact: false, why: "custom_compiler", message: expect.stringContaining('"few"') },
    ]);
  });

  it("reports that the conversation was cleared since", async () => {
    const { agent, stored } = await played({});
    await agent.clear();
    await agent.executeTurn("three").result;
    const prompts = new SentPrompts(await storedOf(stage().look(), "desk"));
    const whys = prompts.calls.map(({ seq }) => prompts.prompt(seq)?.check);
    expect(whys.slice(0, 4)).toEqual(whys.slice(0, 4).map(() => expect.objectContaining({ why: "cleared_messages" })));
    expect(whys.slice(4)).toEqual([{ isExact: true }, { isExact: true }]);
    expect(stored.entries.length).toBeGreaterThan(0);
  });

  it("has the definition with which the turn continued", async () => {
    const gate = createGate<string>();
    const told: Partial<AgentOptions> = { tools: [], instructions: "Before." };
    const waiting = scriptedModel((_request, { signal }) => gate.pass(signal));
    const first = await stage().open({ agents: [defineAgent({ name: "desk", ...told, model: waiting })] });
    const before = await first.agent("desk", { agentId: "desk" });
    await before.start();
    before.executeTurn("go");
    await gate.reached();
    await first.shutdown();
    const later = scriptedModel("new");
    const changed = defineAgent({ name: "desk", ...told, instructions: "After.", model: later });
    const second = await stage().open({ agents: [changed] });
    const agent = await second.find("desk");
    await agent.start();
    await agent.turn("desk#1").result;
    const stored = await storedOf(second.stores, "desk");
    expect([...stored.definitions.values()].map(({ instructions }) => instructions)).toEqual(["Before.", "After."]);
    const prompts = new SentPrompts(stored);
    const rebuilt = prompts.calls.map(({ seq }) => prompts.prompt(seq));
    expect(rebuilt.map((prompt) => prompt?.check.isExact)).toEqual([true, true]);
    expect(rebuilt.map((prompt) => prompt?.request.messages[0]?.content)).toEqual(["Before.", "After."]);
    const [warning] = await entriesOfType(second.stores, "desk", "warning");
    expect(warning?.definition).toEqual(changed.ref);
  });
});

function dataOf(step: number): string {
  return Buffer.from([0x25, 0x50, 0x44, 0x46, 0, step]).toString("base64");
}

function filesOf({ content }: Message) {
  return typeof content === "string" ? [] : content.filter((part) => part.type === "file");
}

function leaf() {
  return defineAgent({ name: "leaf", model: scriptedModel("leaf") });
}

interface PlayOptions {
  readonly prompts?: readonly string[];
  readonly script?: ModelScript;
  readonly before?: Parameters<Agent["executeTurn"]>[1];
}

async function storedOf(stores: Parameters<typeof agentsOf>[0], agentId: string): Promise<StoredConversation> {
  const agent = (await agentsOf(stores, "desk")).find((one) => one.agentId === agentId);
  if (!agent) throw new Error(`no agent ${agentId}`);
  return conversationOf(stores, agent);
}

/** A custom compiler. */
function choosing(name: string, from: number): HistoryCompiler {
  return { name, internalTools: false, compile: ({ history }) => history.slice(from) };
}
