import type { Stores } from "../../../src/stores/index.ts";
import { NOW } from "../../contracts/names.ts";
import { opening, requestOf } from "../../contracts/request-fixtures.ts";
import { identityOf, agentKey, Owner } from "../../contracts/stores-fixtures.ts";

/** The tenant of the command line. */
const TENANT = "default";
const AT_ONCE = 50;

/** Creates this many trees, each newer than the previous one; every tenth waits for a decision. Returns the ids, newest first. */
export async function plantTrees(stores: Stores, count: number): Promise<string[]> {
  const ids = Array.from({ length: count }, (_, index) => `job-${(index * 7919) % count}`);
  for (let at = 0; at < count; at += AT_ONCE) {
    await Promise.all(ids.slice(at, at + AT_ONCE).map((agentId, index) => plant(stores, agentId, at + index)));
  }
  return ids.toReversed();
}

async function plant(stores: Stores, agentId: string, age: number): Promise<void> {
  await stores.createAgent(identityOf(agentId, { tenant: TENANT, createdAt: NOW + age }), null);
  if (age % 10 > 0) return;
  const owner = await new Owner(stores, agentKey(agentId, TENANT)).acquire();
  await owner.commit(opening(requestOf(owner, 0, { openedAt: NOW + age })));
}
