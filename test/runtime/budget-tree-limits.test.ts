import * as fc from "fast-check";
import { expect, it } from "vitest";
import { z } from "zod";
import {
  type AgentDefinition,
  type Budget,
  createRuntime,
  defineAgent,
  defineTool,
  subagent,
} from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { amount } from "../support/full.ts";
import { calling } from "../support/turn-probes.ts";

/** What an agent of a tree calls in each step: the tool `steps` times, and each agent below it once. */
interface Habit {
  readonly steps: number;
  readonly children: readonly Habit[];
}

const habit: fc.Arbitrary<Habit> = fc.letrec<{ tree: Habit }>((tie) => ({
  tree: fc.record({
    steps: fc.integer({ min: 1, max: 3 }),
    children: fc.oneof({ maxDepth: 2 }, fc.constant([]), fc.array(tie("tree"), { maxLength: 3 })),
  }),
})).tree;

interface Ran {
  readonly modelCalls: number;
  /** Runs of the tool plus started agents. */
  readonly toolCalls: number;
  readonly stopReason: string;
  readonly treeSteps: number | undefined;
  readonly treeToolCalls: number | undefined;
}

async function run(root: Habit, budget: Budget): Promise<Ran> {
  let modelCalls = 0;
  let toolRuns = 0;
  let agents = 0;
  const step = defineTool({
    name: "step",
    description: "Steps on.",
    parameters: z.object({}),
    effect: "none",
    execute: () => {
      toolRuns += 1;
      return "on";
    },
  });
  const definitionOf = (own: Habit, name: string): AgentDefinition => {
    const below = own.children.map((child, index) => definitionOf(child, `${name}-${index}`));
    const calls = [...Array.from({ length: own.steps }, () => "step"), ...below.map(({ name: child }) => child)];
    const model = scriptedModel(() => {
      modelCalls += 1;
      return calling(...calls.map((call) => ({ name: call, arguments: call === "step" ? {} : { input: "go" } })));
    });
    const isRoot = name === "a";
    return defineAgent({
      name,
      model,
      tools: [step, ...below.map((child) => subagent(child))],
      budget: { maxSteps: 1_000, ...(isRoot ? budget : {}) },
    });
  };
  const runtime = await createRuntime({ agents: [definitionOf(root, "a")] });
  runtime.subscribe((event) => {
    if (event.type === "subagent.spawned") agents += 1;
  });
  const agent = await runtime.agent("a", { agentId: "a-1" });
  await agent.start();
  const { stopReason } = await agent.executeTurn("go").result;
  const own = (await runtime.accounts("a-1")).find(({ turnId }) => turnId === "a-1#1");
  await runtime.shutdown();
  const { treeSteps, treeToolCalls } = own?.used ?? {};
  return { modelCalls, toolCalls: toolRuns + agents, stopReason, treeSteps, treeToolCalls };
}

it("maxTreeSteps: a tree whose models always call something makes exactly that many model calls", async () => {
  await fc.assert(
    fc.asyncProperty(habit, fc.integer({ min: 1, max: 40 }), async (root, max) => {
      const ran = await run(root, { maxTreeSteps: max });
      expect(ran).toMatchObject({ modelCalls: max, treeSteps: max, stopReason: "steps_limit" });
    }),
    { seed: 23, numRuns: amount(60, 10) },
  );
});

it("maxTreeToolCalls: a tree whose models always call something makes exactly that many calls of tools and agents", async () => {
  await fc.assert(
    fc.asyncProperty(habit, fc.integer({ min: 1, max: 40 }), async (root, max) => {
      const ran = await run(root, { maxTreeToolCalls: max });
      expect(ran).toMatchObject({ toolCalls: max, treeToolCalls: max, stopReason: "steps_limit" });
    }),
    { seed: 29, numRuns: amount(60, 10) },
  );
});
