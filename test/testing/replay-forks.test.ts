// A fork is a stored run like any other: it can be replayed, also if its past was changed.
import { describe, expect, onTestFinished, test } from "vitest";
import { z } from "zod";
import { type AgentDefinition, createRuntime, defineAgent, defineTool, memoryStores } from "../../src/index.ts";
import { checkUpgrade, fork, type ForkOptions, replay, scriptedModel } from "../../src/testing/index.ts";

/** A desk that looks after an approval, pays, and answers. */
function deskOf(instructions: string | (() => string)): AgentDefinition {
  const parameters = z.object({ order: z.string() });
  return defineAgent({
    name: "desk",
    instructions,
    model: scriptedModel((_request, { call }) => {
      if (call?.step === 1) return { toolCalls: [{ name: "look", arguments: { order: "1" } }] };
      if (call?.step === 2) return { toolCalls: [{ name: "pay", arguments: { order: "1" } }] };
      return "Done.";
    }),
    tools: [
      defineTool({
        name: "look",
        description: "Looks.",
        parameters,
        effect: "none",
        needsApproval: true,
        execute: () => "seen",
      }),
      defineTool({ name: "pay", description: "Pays.", parameters, effect: "once", execute: () => "paid" }),
    ],
  });
}

/** A fork of a run of the desk, in the stores of the run. */
async function forkOf(desk: AgentDefinition, options: Partial<ForkOptions>) {
  const stores = memoryStores();
  const runtime = await createRuntime({ agents: [desk], stores });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent(desk, { agentId: "shop" });
  await agent.start();
  const turn = agent.executeTurn("Refund order 1.");
  await turn.settled;
  const [open] = await runtime.requests({});
  await runtime.decide(open?.requestId ?? "", { verdict: "approved" });
  await turn.result;
  const made = await fork({ stores, agentId: "shop" }, { at: { turn: 1, step: 3 }, runtime, ...options });
  onTestFinished(() => made.close());
  expect((await made.turn.result).status).toBe("completed");
  return { stores, agentId: made.agentId };
}

const kinds = [
  { kind: "a text", instructions: "Be brief." },
  { kind: "a function", instructions: () => "Be brief." },
];
const changes: readonly { readonly name: string; readonly options: Partial<ForkOptions>; readonly changed?: number }[] =
  [
    { name: "no change", options: {} },
    { name: "another prompt", options: { edit: { prompt: "Refund order 2." } }, changed: 2 },
    { name: "other instructions", options: { edit: { instructions: "Be long." } } },
    { name: "another result", options: { edit: { messages: { "shop#1:1:0": "unseen" } } }, changed: 1 },
    { name: "an added message", options: { input: "Hurry." } },
    {
      name: "a simulated tool that asks",
      options: { at: { turn: 1, step: 1 }, simulate: { look: () => "dreamt" } },
    },
  ];

describe.each(kinds)("with $kind as instructions", ({ instructions }) => {
  test.each(changes)("a fork with $name is replayed without a difference", async ({ options, changed }) => {
    const desk = deskOf(instructions);
    const result = await replay(await forkOf(desk, options), { agents: desk });
    expect(result).toMatchObject({ isEqual: true, requests: 3 });
    // Prompts that are not those that were sent.
    expect(result.notCompared).toEqual(changed === undefined ? {} : { "changed past": changed });
  });
});

test("a difference is found in a fork, too", async () => {
  const source = await forkOf(deskOf("Be brief."), { edit: { prompt: "Refund order 2." } });
  const result = await replay(source, { agents: deskOf("Be long.") });
  expect(result).toMatchObject({ isEqual: false, part: "system prompt", divergedAt: { turn: 1, step: 1 } });
});

test("forks in a store are no differences for an upgrade", async () => {
  const desk = deskOf("Be brief.");
  const { stores } = await forkOf(desk, { edit: { prompt: "Refund order 2.", instructions: "Be long." } });
  expect(await checkUpgrade(stores, { agents: desk })).toMatchObject({ runs: 2, same: 2, differences: [] });
});
