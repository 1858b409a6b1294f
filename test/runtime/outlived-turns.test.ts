import { expect, it } from "vitest";
import { z } from "zod";
import { createRuntime, defineAgent, defineTool, memoryStores, type RunContext, type Stores } from "../../src/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { entriesOfType, toolTextsOf } from "../support/journal-probes.ts";
import { createGate } from "../support/turn-probes.ts";

const helper = defineAgent({ name: "helper", model: scriptedModel("helped") });

/** Stores that call the listener once, before the first `acquire` after `isDue()` is true. */
function listening(stores: Stores, isDue: () => boolean, listener: () => Promise<void>): Stores {
  let isCalled = false;
  const acquire: Stores["acquire"] = async (...given) => {
    if (!isCalled && isDue()) {
      isCalled = true;
      await listener();
    }
    return await stores.acquire(...given);
  };
  return new Proxy(stores, { get: (all, name) => (name === "acquire" ? acquire : Reflect.get(all, name)) });
}

const acts: readonly (readonly [string, (run: RunContext) => Promise<unknown>])[] = [
  ["starts a child", (run) => run.spawn(helper, "help", { key: "one" })],
  ["asks the model", (run) => run.generate({ messages: [{ role: "user", content: "why?" }] })],
  ["saves an artifact", (run) => run.saveArtifact({ name: "a", contentType: "text/plain", content: "b" })],
];

it.each(acts)("code that %s after its turn ended during a recovery gets an error", async (_, act) => {
  const plain = memoryStores();
  const gate = createGate();
  let isRunning = false;
  const told = Promise.withResolvers<unknown>();
  const slow = defineTool({
    name: "slow",
    description: "Is slow.",
    parameters: z.object({}),
    effect: "none",
    async execute(_args, run) {
      isRunning = true;
      await gate.pass();
      await act(run).then(told.resolve, told.resolve);
      return "done";
    },
  });
  const model = scriptedModel([{ toolCalls: [{ name: "slow", arguments: {} }] }, "never"]);
  const lead = defineAgent({ name: "lead", model, tools: [slow] });
  const client = await createRuntime({ agents: [], stores: plain });
  // The agent is recovered after the commit that starts the call; the abort posted before that ends the turn at once.
  const stores = listening(
    plain,
    () => isRunning,
    async () => (await client.find("lead-1")).abort("enough"),
  );
  const runtime = await createRuntime({ agents: [lead, helper], stores, restoreAfterCommit: true });
  const agent = await runtime.agent("lead", { agentId: "lead-1" });
  await agent.start();
  const result = await agent.executeTurn("go").result;
  expect(result).toMatchObject({ status: "stopped", stopReason: "user_requested" });
  gate.open();
  expect(await told.promise).toMatchObject({ code: "turn_interrupted", message: "turn lead-1#1 is over" });
  const rows = await plain.readJournal({ tenant: "default", agentId: "lead-1" }, 1);
  expect(rows.flatMap(({ entries }) => entries).at(-1)?.type).toBe("turn.ended");
  expect(await plain.listAgents({ tenant: "default", rootAgentId: "lead-1" })).toHaveLength(1);
  await runtime.shutdown();
  await client.shutdown();
});

it.each([
  ["none", "interrupted"],
  ["once", "outcome_unknown"],
] as const)("a tool of class %s whose generate() was refused does not count as successful", async (effect, outcome) => {
  const stores = memoryStores();
  const sum = defineTool({
    name: "sum",
    description: "Sums up.",
    parameters: z.object({}),
    effect,
    execute: async (_args, run) => await run.generate({ messages: [{ role: "user", content: "x".repeat(90_000) }] }),
  });
  const model = scriptedModel([{ toolCalls: [{ name: "sum", arguments: {} }] }, "never"]);
  const runtime = await createRuntime({ agents: [defineAgent({ name: "lead", model, tools: [sum] })], stores });
  const agent = await runtime.agent("lead", { agentId: "lead-1" });
  await agent.start();
  const result = await agent.executeTurn("go", { budget: { maxTokens: 20_000 } }).result;
  expect(result).toMatchObject({ status: "stopped", stopReason: "token_limit" });
  const [settled] = await entriesOfType(stores, "lead-1", "tool.settled");
  expect(settled?.outcome).toBe(outcome);
  expect((await toolTextsOf(agent)).join()).toContain("generate() was refused");
  await runtime.shutdown();
});
