import { describe, expect, it, vi } from "vitest";
import { memoryStores } from "../../src/stores/memory.ts";
import { MemoryDatabase } from "../../src/stores/memory/memory-database.ts";
import { databaseStores } from "../../src/stores/rules/database-stores.ts";
import type { Stores } from "../../src/stores/index.ts";
import type { AgentKey } from "../../src/state/index.ts";
import { note, starting } from "../contracts/entry-fixtures.ts";
import { NOW, ROOT, TENANT } from "../contracts/names.ts";
import { storesContract } from "../contracts/stores.contract.ts";
import { identityOf, keyOf, Owner, ready } from "../contracts/stores-fixtures.ts";
import { loopTurns } from "../support/journal-probes.ts";

storesContract("memory", () => memoryStores());
storesContract("memory, each tree at rest after each call:", () => restingStores());

describe("a tree at rest in memory", () => {
  it("is packed, reads as before and is written to as before", async () => {
    const stores = idleStores();
    const owner = await oneDone(stores);
    const before = await stores.exportTree(TENANT, ROOT);
    await restUntilPacked(stores, owner.key);
    expect(await stores.exportTree(TENANT, ROOT)).toEqual(before);
    await owner.commit({ entries: [note("more")] });
    expect(await stores.readJournal(owner.key, 1)).toHaveLength(2);
  });

  it("stays as it is while something is left to do in it", async () => {
    const stores = idleStores();
    const [owner, other] = [await oneDone(stores), await oneDone(stores, "other")];
    await stores.openTurn(other.key, { input: "go", actorId: null, limits: null, ifBusy: "refuse" }, NOW);
    const record = await stores.readAgent(other.key);
    stores.rest?.([other.key]);
    await restUntilPacked(stores, owner.key);
    expect(await stores.readAgent(other.key)).toBe(record);
  });

  it("stays as it is when it was written to before it could be packed", async () => {
    const stores = idleStores();
    const [owner, other] = [await oneDone(stores), await oneDone(stores, "other")];
    stores.rest?.([other.key]);
    await other.commit({ entries: [note("more")] });
    const record = await stores.readAgent(other.key);
    await restUntilPacked(stores, owner.key);
    expect(await stores.readAgent(other.key)).toBe(record);
  });

  it("waits while the process is busy, and is packed when it is not any more", async () => {
    let isBusy = true;
    const stores = idleStores(() => isBusy);
    const owner = await oneDone(stores);
    const record = await stores.readAgent(owner.key);
    stores.rest?.([owner.key]);
    await loopTurns(20);
    expect(await stores.readAgent(owner.key)).toBe(record);
    isBusy = false;
    await vi.waitUntil(async () => (await stores.readAgent(owner.key)) !== record, { timeout: 30_000 });
  });

  it("is packed although the process is busy when too much waits, the oldest first", async () => {
    const stores = idleStores(() => true);
    const [oldest, large] = [await oneDone(stores), await oneDone(stores, "large")];
    await large.commit({ entries: Array.from({ length: 66_000 }, () => note("one of many")) });
    const [before, other] = [await stores.readAgent(oldest.key), await stores.readAgent(large.key)];
    stores.rest?.([oldest.key]);
    await loopTurns(20);
    expect(await stores.readAgent(oldest.key)).toBe(before);
    stores.rest?.([large.key]);
    await vi.waitUntil(async () => (await stores.readAgent(oldest.key)) !== before, { timeout: 30_000 });
    expect(await stores.readAgent(large.key)).toBe(other);
  });
});

/** Stores of a process that has time to pack, unless it is told otherwise. */
function idleStores(isBusy = (): boolean => false): Stores {
  return databaseStores("memory", new MemoryDatabase(isBusy));
}

/** An agent that is held, and has nothing to do. */
async function oneDone(stores: Stores, agentId = ROOT): Promise<Owner> {
  await stores.createAgent(identityOf(agentId), null);
  const owner = await new Owner(stores, keyOf(agentId)).acquire();
  await owner.commit({ entries: [starting], owned: ready });
  return owner;
}

/** A packed record is made anew when it is read. */
async function restUntilPacked(stores: Stores, key: AgentKey): Promise<void> {
  const before = await stores.readAgent(key);
  stores.rest?.([key]);
  await vi.waitUntil(async () => (await stores.readAgent(key)) !== before, { timeout: 30_000 });
}

/** Stores that are told after each call that all agents rest. */
function restingStores(): Stores {
  const stores = idleStores();
  const rest = async (tenants: readonly string[]): Promise<void> => {
    for (const tenant of new Set(tenants)) stores.rest?.(await stores.listAgents({ tenant, limit: 10_000 }));
    await loopTurns(3);
  };
  const thenRest = async (result: Promise<unknown>, given: readonly unknown[]): Promise<unknown> => {
    try {
      return await result;
    } finally {
      await rest(given.flatMap(tenantsIn));
    }
  };
  return new Proxy(stores, {
    get: (target, name) => {
      const method: unknown = Reflect.get(target, name);
      if (typeof method !== "function") return method;
      return (...given: unknown[]): unknown => {
        const result: unknown = Reflect.apply(method, target, given);
        return result instanceof Promise ? thenRest(result, given) : result;
      };
    },
  });
}

function tenantsIn(given: unknown): string[] {
  if (typeof given === "string") return [given];
  if (Array.isArray(given)) return given.flatMap(tenantsIn);
  if (typeof given !== "object" || given === null) return [];
  const { tenant, key } = given as { readonly tenant?: unknown; readonly key?: unknown };
  return [...(typeof tenant === "string" ? [tenant] : []), ...tenantsIn(key)];
}
