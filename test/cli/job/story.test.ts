import { expect, it } from "vitest";
import { readStory } from "../../../src/cli/job/story.ts";
import { createRuntime, defineAgent, defineTool, type Stores, subagent } from "../../../src/index.ts";
import { memoryStores } from "../../../src/stores/memory.ts";
import { scriptedModel } from "../../../src/testing/index.ts";
import { z } from "zod";
import { calling } from "../../support/turn-probes.ts";

/** A stored tree of a lead and this many readers, and the counted calls of each method of its stores. */
async function storedTree(readers: number) {
  const stores = memoryStores();
  const look = defineTool({
    name: "look",
    description: "Looks.",
    parameters: z.object({}),
    effect: "none",
    execute: () => "seen",
  });
  const reader = defineAgent({
    name: "reader",
    model: scriptedModel(({ messages }) => (messages.at(-1)?.role === "tool" ? "read" : calling("look"))),
    tools: [look],
  });
  const lead = defineAgent({
    name: "lead",
    model: scriptedModel(({ messages }) =>
      messages.at(-1)?.role === "tool"
        ? "done"
        : calling(...Array.from({ length: readers }, () => ({ name: "reader", arguments: { input: "x" } }))),
    ),
    tools: [subagent(reader)],
  });
  const runtime = await createRuntime({ agents: [lead], stores: { ...stores, close: async () => undefined } });
  const agent = await runtime.agent("lead", { agentId: "desk" });
  await agent.start();
  await agent.executeTurn("go").result;
  await runtime.shutdown();
  const calls: Record<string, number> = {};
  const counted = new Proxy(stores, {
    get(target, name) {
      const member: unknown = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      return (...given: unknown[]): unknown => {
        calls[String(name)] = (calls[String(name)] ?? 0) + 1;
        return Reflect.apply(member, target, given);
      };
    },
  }) as Stores;
  return { stores: counted, calls };
}

it("a stored tree is read once, however many agents it has", async () => {
  const { stores, calls } = await storedTree(30);
  const types: string[] = [];
  const story = await readStory(stores, "desk", {
    listener: (page) => types.push(...page.map(({ type }) => type)),
    hasTexts: true,
  });
  expect(story.agents).toHaveLength(31);
  expect(story.agents.every(({ stopReason }) => stopReason === "completed")).toBe(true);
  expect(story.end).toMatchObject({ type: "turn.completed", text: "done" });
  expect(types.filter((type) => type === "turn.completed")).toHaveLength(31);
  // Apart from the pages it reads the prompt and the answer of each turn.
  expect(calls).toEqual({ listAgents: 1, readTree: 1, messagesById: 62, accounts: 1 });
});

it("without texts no message is read, and everything else is the same", async () => {
  const { stores, calls } = await storedTree(30);
  const whole = await readStory(stores, "desk", { hasTexts: true });
  const before = calls["messagesById"];
  const story = await readStory(stores, "desk", { hasTexts: false });
  expect(calls["messagesById"]).toBe(before);
  expect(whole.agents[0]?.prompt).toBe("go");
  expect(story.agents).toEqual(whole.agents.map((agent) => ({ ...agent, prompt: "", text: "" })));
  expect(story.end).toMatchObject({ type: "turn.completed", text: "" });
  expect(story.entries).toEqual(whole.entries);
});
