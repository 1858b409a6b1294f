// The kit in forks and in simulated crashes.
import { expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { createRuntime, defineAgent, defineTool, memoryStores, textOf } from "../../src/index.ts";
import {
  artifactFiles,
  deferredTools,
  guard,
  memory,
  type MemoryStore,
  notes,
  processMemory,
  todos,
  workspace,
} from "../../src/kit/index.ts";
import { fork, scriptedModel, simulate, type SimulatedSurroundings } from "../../src/testing/index.ts";

const order = z.object({ order: z.string() });

const clean = (text: string) => (text.includes("canary") ? { rewrite: text.replaceAll("canary", "bird") } : undefined);

test("a fork of a guarded run sees what the guards let pass, asks none of them again for it, and is guarded itself", async () => {
  const asked: string[] = [];
  const note = (what: string, text: string) => void asked.push(`${what} ${text}`);
  const own = guard({
    input: (text) => (note("input", text), clean(text)),
    toolCall: ({ name, arguments: args }) => (note("call", name + JSON.stringify(args)), undefined),
    toolResult: ({ text }) => (note("result", text), clean(text)),
    output: (text) => (note("output", text), clean(text)),
  });
  let refunds = 0;
  const look = defineTool({
    name: "look",
    description: "Looks.",
    parameters: order,
    effect: "none",
    execute: () => "a canary arrived",
  });
  const refund = defineTool({
    name: "refund",
    description: "Pays back.",
    parameters: order,
    execute: () => `payment ${(refunds += 1)} to the canary`,
  });
  const prompts: string[] = [];
  const script = (words: string) =>
    scriptedModel(({ messages }, { call }) => {
      prompts.push(messages.map(({ content }) => textOf(content)).join("\n"));
      if (call?.step === 1) return { toolCalls: [{ name: "look", arguments: { order: "17" } }] };
      if (call?.step === 2)
        return { toolCalls: [{ name: "call_tool", arguments: { name: "refund", arguments: { order: "17" } } }] };
      return words;
    });
  const tools = deferredTools([look, refund], { keep: ["look"] });
  const desk = defineAgent({ name: "desk", model: script("The canary is paid."), tools, plugins: [own] });
  const stores = memoryStores();
  const runtime = await createRuntime({ agents: [desk], stores });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent(desk, { agentId: "desk-1" });
  await agent.start();
  expect((await agent.executeTurn("My canary is broken.").result).text).toBe("The bird is paid.");
  asked.length = 0;
  const forked = await fork(
    { stores, agentId: "desk-1" },
    { at: { turn: 1, step: 2 }, agents: desk, model: script("So sorry, canary.") },
  );
  expect((await forked.turn.result).text).toBe("So sorry, bird.");
  expect(refunds).toBe(1);
  expect(asked.filter((one) => !one.startsWith("call ") && !one.startsWith("result "))).toEqual([
    "output So sorry, canary.",
  ]);
  expect(prompts.join("\n")).not.toContain("canary");
  const written = (await forked.agent.getMessages()).filter(({ role }) => role !== "user");
  expect(JSON.stringify(written)).not.toContain("canary");
  await forked.close();
});

/** A store whose writes are effects of the world, so that a second one would be found. */
const countedStore = ({ effect }: SimulatedSurroundings): MemoryStore => {
  const real = processMemory();
  const known = new Set<string>();
  return {
    ...real,
    async remember(key, one) {
      if (!known.has(one.id)) effect("remember", { id: one.id });
      known.add(one.id);
      await real.remember(key, one);
    },
  };
};

const agentIn = (store: MemoryStore) =>
  defineAgent({
    name: "clerk",
    model: scriptedModel("never asked"),
    tools: deferredTools([
      defineTool({ name: "look", description: "Looks.", parameters: order, effect: "none", execute: () => "seen" }),
    ]),
    plugins: [
      guard({ toolResult: ({ text }) => (text.includes("e") ? { rewrite: text.replaceAll("e", "3") } : undefined) }),
      workspace(artifactFiles()),
      todos(),
      notes({ scope: "agent" }),
      memory({ store, scope: "agent" }),
    ],
  });

test("agents with the kit survive crashes at any point", async () => {
  const report = await simulate({ world: countedStore, agent: agentIn }, { programs: 4 });
  expect(report.faults).toEqual([]);
  expect(report.deaths).toBeGreaterThan(0);
});
