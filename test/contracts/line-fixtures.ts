import { expect } from "vitest";
import type { Stores } from "../../src/stores/index.ts";
import { type MakeEntry, modelRequested, reservationIn } from "./entry-fixtures.ts";
import { ROOT, TENANT } from "./names.ts";
import { type Owner, openAgent } from "./stores-fixtures.ts";
import { openChild } from "./tree-fixtures.ts";

/** A model call of `tokens` tokens in the first turn of the owner's agent. */
export function call({ key: { agentId } }: Owner, tokens: number): MakeEntry {
  const turnId = `${agentId}#1`;
  const ask = { accountId: `turn:${turnId}`, agentId, key: `${turnId}:1`, promptTokens: 100 };
  return modelRequested({ ...ask, promptBound: 100, outputTokens: tokens - 100 }, { turnId });
}

/** The ids of the waiting agents, in queue order. */
export async function waiting(stores: Stores): Promise<string[]> {
  return (await stores.waiters(TENANT, ROOT)).map(({ ask }) => ask.agentId);
}

/** A root with a limit of 1,000 tokens, 600 of them reserved by its own call, and children that wait for budget in this order. */
export async function openLine(stores: Stores, names: readonly string[], tokens = 500) {
  const owner = await openAgent(stores, { budget: { maxTokens: 1000 } });
  const children: Owner[] = [];
  for (const name of names) children.push(await openChild(owner, name));
  const taken = reservationIn(await owner.commit({ entries: [call(owner, 600)] }));
  for (const child of children) {
    const outcome = await child.commit({ entries: [call(child, tokens)] });
    expect(outcome.entries).toMatchObject([{ type: "intent.refused", reason: "mustWait", used: 0, max: 1000 }]);
  }
  const ids = children.map(({ key }) => key.agentId);
  expect(await waiting(stores)).toEqual(ids);
  return { owner, children, ids, taken };
}

export function only(owners: readonly Owner[], index: number): Owner {
  const owner = owners[index];
  if (!owner) throw new Error(`child does not exist: ${index}`);
  return owner;
}
