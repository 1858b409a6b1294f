import { expect, it } from "vitest";
import { createRuntime, defineAgent, memoryStores, type Stores, textOf } from "../../src/index.ts";
import type { RolledBackTree } from "../../src/stores/index.ts";
import { scriptedModel } from "../../src/testing/index.ts";
import { entriesOfType } from "../support/journal-probes.ts";

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
