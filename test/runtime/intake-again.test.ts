import { expect, it } from "vitest";
import { z } from "zod";
import { createRuntime, defineAgent, defineTool, memoryStores, type Stores, subagent } from "../../src/index.ts";
import type { InboxItem } from "../../src/state/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { loopTurns } from "../support/journal-probes.ts";
import { createGate } from "../support/turn-probes.ts";

/** Stores whose inbox returns every turn again and again, even those accepted long ago. */
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

const calling = (name: string, input: object) => scriptedModel([{ toolCalls: [{ name, arguments: input }] }, "never"]);

it("a turn that has ended is not started again by a duplicate post, even under a later lease", async () => {
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

it("a second abort of a turn that takes long to end leaves no inbox item, and the lease is released", async () => {
  const stores = memoryStores();
  const [begun, ending] = [createGate(), createGate()];
  const slow = defineTool({
    name: "slow",
    description: "Begins something elsewhere.",
    parameters: z.object({}),
    effect: "none",
    async execute(_args, run) {
      await run.note({ began: true });
      await begun.pass();
      return "done";
    },
    cancel: async () => await ending.pass(),
  });
  const helper = defineAgent({ name: "helper", model: calling("slow", {}), tools: [slow] });
  const lead = defineAgent({ name: "lead", model: calling("helper", { input: "help" }), tools: [subagent(helper)] });
  const runtime = await createRuntime({ agents: [lead], stores });
  const agent = await runtime.agent("lead", { agentId: "lead-1" });
  await agent.start();
  const turn = agent.executeTurn("go");
  await begun.reached();
  const [helping] = (await runtime.list({ rootAgentId: "lead-1" })).filter(({ depth }) => depth > 0);
  if (!helping) throw new Error("expected a helper");
  const key = { tenant: "default", agentId: helping.agentId };
  await agent.abort("enough");
  await ending.reached();
  // Waits until the first abort was handled and has left the inbox.
  for (let looks = 0; looks < 1_000 && (await stores.inbox(key)).length > 0; looks += 1) await loopTurns(1);
  expect(await stores.inbox(key)).toEqual([]);
  await agent.abort("enough, again");
  ending.open();
  expect(await turn.result).toMatchObject({ status: "stopped", stopReason: "user_requested" });
  for (let looks = 0; looks < 1_000 && (await stores.holder(key)); looks += 1) await loopTurns(1);
  expect(await stores.inbox(key)).toEqual([]);
  expect(await stores.holder(key)).toBeUndefined();
  await runtime.shutdown();
});

it("when many children end at once, a few reads of the inbox suffice", async () => {
  const children = 60;
  const stores = memoryStores();
  let reads = 0;
  const counted = new Proxy(stores, {
    get: (all, name) => {
      const value: unknown = Reflect.get(all, name);
      if (name !== "inbox") return value;
      return (...given: Parameters<Stores["inbox"]>) => {
        if (given[0].agentId === "lead") reads += 1;
        return stores.inbox(...given);
      };
    },
  });
  const child = defineAgent({ name: "child", model: scriptedModel(() => "found") });
  const toolCalls = Array.from({ length: children }, () => ({ name: "child", arguments: { input: "look" } }));
  const model = scriptedModel([{ toolCalls }, "all found"]);
  const lead = defineAgent({ name: "lead", model, tools: [subagent(child, { policy: { maxChildren: children } })] });
  const runtime = await createRuntime({ agents: [lead], stores: counted });
  const agent = await runtime.agent("lead", { agentId: "lead" });
  await agent.start();
  expect((await agent.executeTurn("go").result).text).toBe("all found");
  expect(reads).toBeLessThan(children / 3);
  await runtime.shutdown();
});
