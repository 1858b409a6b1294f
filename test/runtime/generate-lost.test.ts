import { expect, it } from "vitest";
import { z } from "zod";
import { createRuntime, defineAgent, defineTool, memoryStores, type Stores, textOf } from "../../src/index.ts";
import type { RolledBackTree } from "../../src/stores/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { entriesOfType } from "../support/journal-probes.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { createGate, type Gate } from "../support/turn-probes.ts";

/** Stores that lose the first commit with an entry of each type and report the loss. */
function losing(stores: Stores, types: readonly string[]): Stores {
  const left = new Set(types);
  const listeners = new Set<(found: RolledBackTree) => void>();
  const commit: Stores["commit"] = async (batches, ...rest) => {
    const lost = batches.find(({ entries }) => entries.some(({ type }) => left.delete(type)));
    if (!lost) return await stores.commit(batches, ...rest);
    const { tenant, agentId: rootAgentId } = lost.key;
    setImmediate(() => {
      for (const listener of listeners) listener({ tenant, rootAgentId, hadAt: 2, foundAt: 1 });
    });
    return batches.map(({ epoch, expectedSeq }) => ({ type: "stale", epoch, seq: expectedSeq }));
  };
  const onRolledBack: Stores["onRolledBack"] = (listener) => {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  };
  const ours: Partial<Stores> = { commit, onRolledBack };
  return new Proxy(stores, { get: (all, name) => Reflect.get(name in ours ? ours : all, name) });
}

it("a side call whose result is lost, and then its settlement too, leaves no reservation", async () => {
  const stores = memoryStores();
  const model = scriptedModel(({ messages }) =>
    textOf(messages[0]?.content ?? "") === "sum up" ? "a summary" : "the end",
  );
  const agents = [
    defineAgent({
      name: "worker",
      model,
      hooks: {
        beforeLlm: async (_draft, run) => {
          await run.generate({ messages: [{ role: "user", content: "sum up" }] });
        },
      },
    }),
  ];
  const runtime = await createRuntime({ agents, stores: losing(stores, ["generate.responded", "generate.failed"]) });
  const agent = await runtime.agent("worker", { agentId: "worker-1", budget: { maxTokens: 90_000 } });
  await agent.start();
  expect(await agent.executeTurn("go").result).toMatchObject({ status: "completed", text: "the end" });
  expect(await entriesOfType(stores, "worker-1", "generate.requested")).toHaveLength(2);
  expect(await entriesOfType(stores, "worker-1", "generate.failed")).toHaveLength(1);
  const [account] = await stores.accounts("default", "worker-1");
  expect(account).toMatchObject({ reserved: { tokens: 0, costMicros: 0 } });
  expect(account?.unconfirmed.tokens).toBeGreaterThan(0);
  await runtime.shutdown();
});

/** A hook that asks the model after the gate, and a tool whose body waits at another one. */
function define(question: string, { hook, tool }: { readonly hook: Gate<void>; readonly tool: Gate<void> }) {
  const told = Promise.withResolvers<string>();
  let askedBySide = 0;
  const model = scriptedModel(({ messages }) => {
    if (messages.length === 1 && textOf(messages[0]?.content ?? "").startsWith("sum up")) {
      askedBySide += 1;
      return "a summary";
    }
    return messages.at(-1)?.role === "tool" ? "the end" : { toolCalls: [{ name: "slow", arguments: {} }] };
  });
  const slow = defineTool({
    name: "slow",
    description: "Is slow.",
    parameters: z.object({}),
    effect: "none",
    execute: async () => {
      await tool.pass();
      return "done";
    },
  });
  const worker = defineAgent({
    name: "worker",
    model,
    tools: [slow],
    hooks: {
      beforeLlm: async (_draft, run) => {
        if (run.step > 1) return;
        await hook.pass();
        const answer = run.generate({ messages: [{ role: "user", content: question }] });
        answer.then(
          ({ content }) => told.resolve(content),
          (error: unknown) => told.resolve(String(error)),
        );
        await answer;
      },
    },
  });
  return { worker, told: told.promise, asked: () => askedBySide };
}

function openGate(): Gate<void> {
  const gate = createGate();
  gate.open();
  return gate;
}

describeRuntimes("code that outlives its process's ownership", (stage) => {
  it.each([
    ["gets the answer that another process got", "sum up", "a summary"],
    ["asks nothing else, because its run is over", "sum up again", /^TurnInterruptedError: /],
  ])("%s", async (_, question, expected) => {
    const [hook, tool] = [createGate(), createGate()];
    const mine = define(question, { hook, tool: openGate() });
    const theirs = define("sum up", { hook: openGate(), tool });
    const first = await stage().openProcess({ agents: [mine.worker] });
    const agent = await first.runtime.agent("worker", { agentId: "worker-1" });
    await agent.start();
    const turn = agent.executeTurn("go");
    turn.result.catch(() => undefined);
    await hook.reached();
    first.freeze();
    stage().expireLeases();
    const second = await stage().openProcess({ agents: [theirs.worker] });
    expect(await second.runtime.recover()).toEqual(["worker-1"]);
    await tool.reached();
    second.kill();
    first.thaw();
    stage().expireLeases();
    await first.runtime.recover();
    hook.open();
    expect(await mine.told).toMatch(expected);
    const back = await first.runtime.find("worker-1");
    await back.start();
    expect(await back.turn("worker-1#1").result).toMatchObject({ status: "completed", text: "the end" });
    expect([mine.asked(), theirs.asked()]).toEqual([0, 1]);
    expect(await entriesOfType(stage().look(), "worker-1", "generate.requested")).toHaveLength(1);
  });
});
