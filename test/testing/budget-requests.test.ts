// Forks and replays of turns that ask a person for more budget.
import { expect, onTestFinished, test } from "vitest";
import { createRuntime, defineAgent, defineTool, memoryStores, type Stores } from "../../src/index.ts";
import { fork, replay, scriptedModel } from "../../src/testing/index.ts";
import { z } from "zod";

const usage = { inputTokens: 20, outputTokens: 180 };
const look = defineTool({
  name: "look",
  description: "Looks.",
  parameters: z.object({}),
  effect: "none",
  execute: () => "seen",
});

function clerkWith(maxTokens: number) {
  return defineAgent({
    name: "clerk",
    tools: [look],
    maxOutputTokens: 300,
    budget: { maxTokens, askAtLimit: true },
    model: scriptedModel(({ messages }) =>
      messages.some(({ role }) => role === "tool")
        ? { text: "Done.", usage }
        : { toolCalls: [{ name: "look", arguments: {} }], usage },
    ),
  });
}

/** A turn whose second model call waits for a person. */
async function waiting(stores: Stores, maxTokens: number) {
  const clerk = clerkWith(maxTokens);
  const runtime = await createRuntime({ agents: [clerk], stores });
  onTestFinished(() => runtime.shutdown());
  const agent = await runtime.agent(clerk, { agentId: "desk" });
  await agent.start();
  const turn = agent.executeTurn("Look once.");
  expect((await turn.settled).status).toBe("waiting");
  const [request] = await agent.requests();
  if (!request) throw new Error("no request was opened");
  return { clerk, runtime, agent, turn, request };
}

test("a fork of a turn that waits for more budget goes on with an unused budget, and its origin keeps waiting", async () => {
  const stores = memoryStores();
  // The first call leaves too little for the second one.
  const { clerk, agent, request } = await waiting(stores, 400);
  for (const at of [{ turn: 1 }, { turn: 1, step: 2 }]) {
    const made = await fork({ stores, agentId: "desk" }, { at, agents: clerk });
    onTestFinished(() => made.close());
    expect(await made.turn.result).toMatchObject({ status: "completed", text: "Done." });
    expect(await made.agent.requests()).toEqual([]);
  }
  expect(await agent.requests()).toEqual([request]);
});

test("a fork that meets the limit asks with a request of its own", async () => {
  const stores = memoryStores();
  const { clerk, agent, request } = await waiting(stores, 100);
  const made = await fork({ stores, agentId: "desk" }, { at: { turn: 1 }, agents: clerk });
  onTestFinished(() => made.close());
  expect((await made.turn.settled).status).toBe("waiting");
  const [own] = await made.agent.requests();
  expect(own).toMatchObject({ kind: "budget", arguments: { accountId: `turn:${await made.turn.id}` } });
  expect(own?.requestId).not.toBe(request.requestId);
  await made.agent.decide(own?.requestId ?? "", { verdict: "edited", arguments: { add: 5_000 } });
  expect((await made.turn.result).status).toBe("completed");
  expect(await agent.requests()).toEqual([request]);
});

test("a run with decided budget requests and followed forecasts replays without a difference", async () => {
  const stores = memoryStores();
  const { clerk, runtime, agent, turn, request } = await waiting(stores, 400);
  const seen: string[] = [];
  runtime.subscribe(({ type }) => void seen.push(type));
  await agent.decide(request.requestId, { verdict: "edited", arguments: { add: 300 }, by: "mo" });
  expect((await turn.result).status).toBe("completed");
  expect(seen).toContain("budget.forecast");
  expect(await replay({ stores, agentId: "desk" }, { agents: clerk })).toMatchObject({ isEqual: true, requests: 2 });
});
