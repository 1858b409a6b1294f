import { copyFileSync, existsSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import {
  type Account,
  createRuntime,
  defineAgent,
  memoryStores,
  ModelError,
  type Runtime,
  type Stores,
} from "../../src/index.ts";
import { DEFAULT_TENANT, type Entry } from "../../src/state/index.ts";
import { sqliteStores } from "../../src/stores/sqlite.ts";
import { type ModelScript, scriptedModel } from "../../src/testing/index.ts";
import { describeRuntimes } from "../support/runtimes.ts";
import { createGate } from "../support/turn-probes.ts";

const id = "desk";
const usage = { inputTokens: 30, outputTokens: 10 };
const price = { inputPerMillion: 2, outputPerMillion: 8 };
const life = { maxTokens: 100_000, maxCost: 1 };

function workerOf(script: ModelScript) {
  return defineAgent({ name: "worker", model: scriptedModel(script), price, maxOutputTokens: 500 });
}

/** The agent's lifetime account. */
async function lifeIn(stores: Stores): Promise<Account | undefined> {
  return (await stores.accounts(DEFAULT_TENANT, id)).find(({ parentId }) => parentId === null);
}

/** All settlements of the journal, summed from zero: the expected account. */
async function settledIn(stores: Stores) {
  const rows = await stores.readJournal({ tenant: DEFAULT_TENANT, agentId: id }, 1);
  const settlements = rows
    .flatMap((row): readonly Entry[] => row.entries)
    .flatMap((entry) => ("settlement" in entry && entry.settlement ? [entry.settlement] : []));
  const sum = (of: readonly (typeof settlements)[number][]) => ({
    tokens: of.reduce((total, { tokens }) => total + tokens, 0),
    costMicros: of.reduce((total, { costMicros }) => total + costMicros, 0),
  });
  return { used: sum(settlements), unconfirmed: sum(settlements.filter((one) => one.unconfirmed)) };
}

async function expectSettledOnce(stores: Stores): Promise<void> {
  const { used, unconfirmed } = await settledIn(stores);
  expect(await lifeIn(stores)).toMatchObject({ used, unconfirmed, reserved: { tokens: 0, costMicros: 0 } });
}

async function reservedFor(stores: Stores) {
  const rows = await stores.readJournal({ tenant: DEFAULT_TENANT, agentId: id }, 1);
  return rows
    .flatMap((row): readonly Entry[] => row.entries)
    .flatMap((entry) => (entry.type === "model.requested" && entry.reservation ? [entry.reservation] : []));
}

/** Runs the stored turn to its end in another process. */
async function carryOn(stores: Stores, script: ModelScript): Promise<void> {
  const runtime = await createRuntime({ agents: [workerOf(script)], stores });
  await runtime.recover();
  const result = await (await runtime.find(id)).turn(`${id}#1`).result;
  expect(result).toMatchObject({ status: "completed", text: "done" });
  await expectSettledOnce(stores);
  // The turn's result, logs and events agree with the account, in tokens and in money.
  const life = await lifeIn(stores);
  expect(result.usage.inputTokens + result.usage.outputTokens).toBe(life?.used.tokens);
  expect(result.cost).toBe((life?.used.costMicros ?? 0) / 1_000_000);
  expect(result.usage.estimated).toBe((life?.unconfirmed.tokens ?? 0) > 0);
  await runtime.shutdown();
}

describeRuntimes("a budget after failures", (stage) => {
  const run = async (script: ModelScript) => {
    const runtime = await stage().open({ agents: [workerOf(script)] });
    const agent = await runtime.agent("worker", { agentId: id, budget: life });
    await agent.start();
    const turn = agent.executeTurn("go");
    for (let waits = 0; waits < 50; waits += 1) {
      await new Promise((resolve) => setImmediate(resolve));
      stage().clock.advance(1_000);
    }
    expect(await turn.result).toMatchObject({ status: "completed", text: "done" });
    await runtime.shutdown();
    return stage().look();
  };

  it("reserves each retry separately, and settles each by its known usage", async () => {
    const lost = new ModelError("gone", { retryable: true, mayHaveBeenSent: true });
    const refused = new ModelError("busy", { retryable: true, mayHaveBeenSent: true, status: 503 });
    const stores = await run([{ error: lost }, { error: refused }, { text: "done", usage }]);
    const [first, ...others] = await reservedFor(stores);
    expect(others).toHaveLength(2);
    await expectSettledOnce(stores);
    expect(await lifeIn(stores)).toMatchObject({
      used: { tokens: (first?.tokens ?? 0) + 40, costMicros: (first?.costMicros ?? 0) + 140 },
      unconfirmed: { tokens: first?.tokens, costMicros: first?.costMicros },
    });
  });

  it("settles a cut stream at its prompt tokens plus the output tokens received", async () => {
    const cut = new ModelError("cut", { retryable: true, mayHaveBeenSent: true, partialOutputTokens: 7 });
    const stores = await run([{ error: cut }, { text: "done", usage }]);
    const rows = await stores.readJournal({ tenant: DEFAULT_TENANT, agentId: id }, 1);
    const asked = rows.flatMap((row): readonly Entry[] => row.entries).find(({ type }) => type === "model.requested");
    const promptTokens = asked?.type === "model.requested" ? asked.ask.promptTokens : 0;
    await expectSettledOnce(stores);
    expect(await lifeIn(stores)).toMatchObject({
      used: { tokens: promptTokens + 7 + 40 },
      unconfirmed: { tokens: 0, costMicros: 0 },
    });
  });

  it("does not change, however often the agent is recovered", async () => {
    const stores = await run([{ text: "done", usage }]);
    const before = await lifeIn(stores);
    for (let times = 0; times < 3; times += 1) {
      const runtime = await stage().open({ agents: [workerOf("never")] });
      await runtime.recover();
      expect(await lifeIn(runtime.stores)).toEqual(before);
      await (await runtime.find(id)).start();
      expect(await lifeIn(runtime.stores)).toEqual(before);
      await runtime.shutdown();
    }
    expect(before).toMatchObject({ used: { tokens: 40, steps: 1 } });
  });
});

/** A tree with one call in flight whose process has died. */
async function interrupted(stores: Stores): Promise<Runtime> {
  const gate = createGate<string>();
  const runtime = await createRuntime({ agents: [workerOf(() => gate.pass())], stores });
  const agent = await runtime.agent("worker", { agentId: id, budget: life });
  await agent.start();
  agent.executeTurn("go").result.catch(() => undefined);
  await gate.reached();
  expect((await lifeIn(stores))?.reserved.tokens).toBeGreaterThan(500);
  return runtime;
}

const answer: ModelScript = [{ text: "done", usage }];

it("importing a tree that was exported with a call in flight neither refills nor charges its budget twice", async () => {
  const stores = memoryStores();
  const runtime = await interrupted(stores);
  const tree = await stores.exportTree(DEFAULT_TENANT, id);
  if (!tree) throw new Error("expected a stored tree");
  const reserved = (await lifeIn(stores))?.reserved;
  const saved = JSON.parse(JSON.stringify(tree)) as typeof tree;
  for (const copy of [memoryStores(), memoryStores()]) {
    await copy.registerProcess({ processId: "mover", pid: 1, bootId: "another" }, 0);
    await copy.importTree({ ...saved, agents: saved.agents.map((agent) => ({ ...agent, isHeld: false })) }, "mover");
    expect((await lifeIn(copy))?.reserved).toEqual(reserved);
    await carryOn(copy, answer);
    expect(await lifeIn(copy)).toMatchObject({
      used: { tokens: (reserved?.tokens ?? 0) + 40, steps: 1 },
      unconfirmed: reserved,
      limits: { maxTokens: 100_000, maxCostMicros: 1_000_000 },
    });
  }
  await runtime.shutdown({ timeoutMs: 0 });
});

describeRuntimes(
  "a copied file",
  (stage) => {
    it("neither refills a budget nor charges it twice, and does not change the original", async () => {
      const original = join(stage().folder ?? "", "mine.db");
      const copied = join(stage().folder ?? "", "copy.db");
      const mine = sqliteStores(original);
      const runtime = await interrupted(mine);
      const before = await lifeIn(mine);
      for (const ending of ["", "-wal"]) {
        if (existsSync(original + ending)) copyFileSync(original + ending, copied + ending);
      }
      const theirs = sqliteStores(copied);
      expect(await lifeIn(theirs)).toEqual(before);
      // The copy still names this process as the agent's owner, but no process works on that store.
      const tree = await theirs.exportTree(DEFAULT_TENANT, id);
      if (!tree) throw new Error("expected a stored tree");
      await theirs.importTree({ ...tree, agents: tree.agents.map((agent) => ({ ...agent, isHeld: false })) }, "mover");
      await carryOn(theirs, answer);
      expect(await lifeIn(mine)).toEqual(before);
      await runtime.shutdown({ timeoutMs: 0 });
    });
  },
  ["sqlite"],
);
