import type { StoredTree, Stores } from "../../src/stores/index.ts";
import { messageOf, modelRequested, note } from "./entry-fixtures.ts";
import { NOW, ROOT, TENANT, TURN } from "./names.ts";
import { approved, opening, requestOf } from "./request-fixtures.ts";
import { agentKey, type Owner, openAgent } from "./stores-fixtures.ts";
import { openChild } from "./tree-fixtures.ts";

export const artifact = {
  artifactId: "a1",
  name: "plan",
  contentType: "text/plain",
  size: 1,
  createdAt: NOW,
  turnId: TURN,
  callId: `${TURN}:1:0`,
  content: "x",
};

export interface Team {
  readonly root: Owner;
  readonly kid: Owner;
}

/** A root and a child with every kind of record. */
export async function openTeam(stores: Stores): Promise<Team> {
  const root = await openAgent(stores, { budget: { maxTokens: 9000 }, turnBudget: { deadline: NOW + 900 } });
  const kid = await openChild(root, "kid", { maxSteps: 3 });
  await root.commit({ entries: [note("one")], messages: [messageOf("m1"), messageOf("m2")], artifacts: [artifact] });
  await kid.commit({ entries: [note("two")], messages: [messageOf("m1", "the child's")] });
  await root.commit(opening(requestOf(root, 0, { expiresAt: NOW + 500 }), requestOf(root, 1)));
  const key = { text: "k1", hash: "h1" };
  await stores.openTurn(agentKey(), { input: "go", actorId: null, limits: null, ifBusy: "queue", key }, NOW);
  await stores.decide(agentKey(), requestOf(root, 1).requestId, approved, NOW);
  await root.commit({ entries: [modelRequested()], messages: [messageOf("m3")] });
  return { root, kid };
}

export async function exported(stores: Stores, rootAgentId: string = ROOT): Promise<StoredTree> {
  const tree = await stores.exportTree(TENANT, rootAgentId);
  if (!tree) throw new Error(`the tree does not exist: ${rootAgentId}`);
  return tree;
}

/** A tree without the fields that each store numbers itself. */
export function withoutCursors(tree: StoredTree): unknown {
  return {
    ...tree,
    rows: tree.rows.map(({ cursor: _cursor, ...row }) => row),
    agents: tree.agents.map(({ lastBatch, ...agent }) => ({
      ...agent,
      lastBatch: lastBatch && { ...lastBatch, outcome: { ...lastBatch.outcome, cursor: 0 } },
    })),
    projections: tree.projections.map(({ name }) => name),
  };
}

export async function cursorsOf(stores: Stores, rootAgentId: string = ROOT): Promise<number[]> {
  return (await stores.readTree(TENANT, rootAgentId, 0, 1000)).map((row) => row.cursor);
}

export function growing(cursors: readonly number[]): number[] {
  return [...new Set(cursors)].toSorted((a, b) => a - b);
}
