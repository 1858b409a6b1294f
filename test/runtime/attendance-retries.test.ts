import { expect, it } from "vitest";
import { StoreUnavailableError } from "../../src/errors/index.ts";
import { createRuntime, defineAgent, memoryStores, type Stores, subagent } from "../../src/index.ts";
import { createFakeClock, scriptedModel } from "../../src/testing/index.ts";
import { elapse } from "../support/journal-probes.ts";
import { calling } from "../support/turn-probes.ts";

/** Stores that are full or unavailable for the first `times` acquisitions of a child. */
function unavailableFor(times: number): { readonly stores: Stores; readonly refused: () => number } {
  const stores = memoryStores();
  let refused = 0;
  const acquire: Stores["acquire"] = async (key, ...rest) => {
    if (key.agentId.includes("~") && refused < times) {
      refused += 1;
      throw new StoreUnavailableError("full");
    }
    return await stores.acquire(key, ...rest);
  };
  return { stores: { ...stores, acquire }, refused: () => refused };
}

it("a child that could not be activated because the stores did not answer is activated once they answer", async () => {
  const clock = createFakeClock();
  const { stores, refused } = unavailableFor(4);
  const helper = defineAgent({ name: "helper", model: scriptedModel("helped") });
  const lead = defineAgent({
    name: "lead",
    model: scriptedModel([calling({ name: "helper", arguments: { input: "Help." } }), "the end"]),
    tools: [subagent(helper)],
  });
  const runtime = await createRuntime({ agents: [lead], stores, clock });
  const agent = await runtime.agent("lead", { agentId: "a" });
  await agent.start();
  const turn = agent.executeTurn("Go.");
  expect(await elapse(clock, turn.result, 20_000)).toMatchObject({ status: "completed", text: "the end" });
  expect(refused()).toBe(4);
  await runtime.shutdown();
});

it("any other event for a child while the stores do not answer fails no turn", async () => {
  const clock = createFakeClock();
  const stores = memoryStores();
  const reached = Promise.withResolvers<void>();
  const aborted = Promise.withResolvers<void>();
  let refused = 0;
  const acquire: Stores["acquire"] = async (key, ...rest) => {
    if (!key.agentId.includes("~") || refused === 2) return await stores.acquire(key, ...rest);
    refused += 1;
    reached.resolve();
    await aborted.promise;
    throw new StoreUnavailableError("full");
  };
  const helper = defineAgent({ name: "helper", model: scriptedModel("helped") });
  const lead = defineAgent({
    name: "lead",
    model: scriptedModel([calling({ name: "helper", arguments: { input: "Help." } })]),
    tools: [subagent(helper)],
  });
  const runtime = await createRuntime({ agents: [lead], stores: { ...stores, acquire }, clock });
  const agent = await runtime.agent("lead", { agentId: "a" });
  await agent.start();
  const turn = agent.executeTurn("Go.");
  await reached.promise;
  await turn.abort("enough");
  aborted.resolve();
  expect(await elapse(clock, turn.result, 20_000)).toMatchObject({ status: "stopped" });
  expect(refused).toBe(2);
  await runtime.shutdown();
});
