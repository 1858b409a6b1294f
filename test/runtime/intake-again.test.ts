import { expect, it } from "vitest";
import { createRuntime, defineAgent, memoryStores, type Stores } from "../../src/index.ts";
import type { InboxItem } from "../../src/state/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";

/** Stores that tell of every turn again and again, also of those that were taken in long ago. */
function repeating(stores: Stores): Stores {
  const told: InboxItem[] = [];
  const openTurn: Stores["openTurn"] = async (...command) => {
    const outcome = await stores.openTurn(...command);
    if ("item" in outcome) told.push(outcome.item);
    return outcome;
  };
  const inbox: Stores["inbox"] = async (key) => {
    const items = await stores.inbox(key);
    return [...told.filter((one) => items.every((item) => item.key !== one.key)), ...items];
  };
  const ours: Partial<Stores> = { openTurn, inbox };
  return new Proxy(stores, {
    get: (all, name) => (name in ours ? Reflect.get(ours, name) : Reflect.get(all, name)),
  });
}

it("a turn that has ended is not begun again by a post that comes twice, whoever owns the agent by then", async () => {
  let asked = 0;
  const model = scriptedModel(() => `answer ${(asked += 1)}`);
  const agents = [defineAgent({ name: "clerk", model })];
  const runtime = await createRuntime({ agents, stores: repeating(memoryStores()) });
  const agent = await runtime.agent("clerk", { agentId: "c" });
  for (const number of [1, 2, 3]) {
    await agent.start();
    expect((await agent.executeTurn("go").result).text).toBe(`answer ${number}`);
    await agent.shutdown();
  }
  await agent.start();
  expect(agent.state).toMatchObject({ status: "ready", turnCount: 3, openTurnId: null });
  expect(asked).toBe(3);
  await runtime.shutdown();
});
