import type { Budget } from "../../src/budget/index.ts";
import { turnIdOf } from "../../src/state/index.ts";
import type { SpawnOrder } from "../../src/stores/index.ts";
import { type MakeEntry, starting } from "./entry-fixtures.ts";
import { NOW } from "./names.ts";
import { accountOf, identityOf, agentKey, Owner, ready } from "./stores-fixtures.ts";

/** The intent and the spawn order for a child of the root's first turn. */
export function spawning(owner: Owner, name: string, budget: Budget = {}): { entry: MakeEntry; order: SpawnOrder } {
  const parent = owner.key.agentId;
  const rootAgentId = parent.split("~")[0] ?? parent;
  const [childId, parentTurnId] = [`${rootAgentId}~${name}`, turnIdOf(parent, 1)];
  const childTurnId = turnIdOf(childId, 1);
  const parentId = `turn:${parentTurnId}`;
  const seq = owner.seq + 1;
  return {
    entry: (envelope) => ({
      type: "child.spawned",
      ...envelope,
      turnId: parentTurnId,
      step: 1,
      childId,
      childTurnId,
      definition: { name: "helper", hash: "h2" },
      accountId: parentId,
    }),
    order: {
      seq,
      identity: identityOf(childId, {
        tenant: owner.key.tenant,
        rootAgentId,
        parentAgentId: parent,
        parentTurnId,
        parentStep: 1,
        depth: 1,
        accountId: `agent:${childId}`,
        parentAccountId: parentId,
      }),
      account: accountOf(`agent:${childId}`, budget, { agentId: childId, parentId }),
      turn: {
        kind: "turn",
        key: `turn:${childTurnId}`,
        at: NOW,
        turnId: childTurnId,
        number: 1,
        input: "go",
        actorId: null,
        limits: null,
      },
    },
  };
}

/** Spawns a child, then acquires and starts it. */
export async function openChild(parent: Owner, name: string, budget: Budget = {}): Promise<Owner> {
  const { entry, order } = spawning(parent, name, budget);
  await parent.commit({ entries: [entry], spawns: [order] });
  const child = await new Owner(parent.stores, agentKey(order.identity.agentId, parent.key.tenant)).acquire();
  const { turnId } = order.turn;
  const turn = accountOf(`turn:${turnId}`, {}, { agentId: child.key.agentId, turnId, parentId: order.account.id });
  await child.commit({
    entries: [starting],
    owned: ready,
    acknowledged: [order.turn.key],
    moves: [{ type: "open", account: turn }],
  });
  return child;
}
