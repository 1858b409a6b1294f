import { changeBetween } from "../../budget/index.ts";
import type { AgentKey, AgentRecord, InboxItem } from "../../state/index.ts";
import type { KnownItems, StoredTree, Stores } from "../../stores/index.ts";

const ALL = Number.MAX_SAFE_INTEGER;

/**
 * Other processes see an unsaved tree in its last saved state, and send turns, decisions, pauses and aborts to that copy. Those
 * calls were acknowledged, so they must reach the tree in memory.
 */
export class PassedCommands {
  readonly #known = new Map<string, Set<string>>();

  /** A copy of the keys of the items that the tree in memory already has. */
  get known(): KnownItems {
    return new Map([...this.#known].map(([agentId, keys]) => [agentId, new Set(keys)]));
  }

  /** Must be called with the tree as it is now stored. */
  note(tree: StoredTree): void {
    this.#known.clear();
    for (const { record, inbox } of tree.agents) for (const { key } of inbox) this.#isNew(record.agentId, key);
  }

  /** Passes the new items of the saved copy to the tree in memory. Returns whether there were any. */
  async pass(saved: Stores, memory: Stores, { tenant, agentId: rootAgentId }: AgentKey): Promise<boolean> {
    let isAny = false;
    for (const record of await saved.listAgents({ tenant, rootAgentId, limit: ALL })) {
      for (const item of await saved.inbox(record)) {
        if (!this.#isNew(record.agentId, item.key)) continue;
        await give(memory, record, item);
        isAny = true;
      }
    }
    return isAny;
  }

  #isNew(agentId: string, itemKey: string): boolean {
    const keys = this.#known.get(agentId) ?? new Set();
    if (keys.has(itemKey)) return false;
    this.#known.set(agentId, keys.add(itemKey));
    return true;
  }
}

/** Repeats the command that posted the item. */
async function give(memory: Stores, saved: AgentRecord, item: InboxItem): Promise<void> {
  const { tenant, agentId } = saved;
  const key = { tenant, agentId };
  switch (item.kind) {
    case "turn": {
      const { input, actorId, limits, clientTools, settings, trace, at, turnKey } = item;
      const command = { input, actorId, limits, clientTools, settings, trace, ifBusy: "queue" } as const;
      const { type } = await memory.openTurn(key, { ...command, key: turnKey }, at);
      // In memory the key belongs to another turn since the last save.
      if (type === "conflict") await memory.openTurn(key, command, at);
      return;
    }
    case "steer": {
      const { steerId, turnId, input, actorId, limits, clientTools, settings, trace, at, inputKey } = item;
      const turn = { input, actorId, limits, clientTools, settings, trace } as const;
      const { type } = await memory.steer(key, { steerId, turnId, turn: { ...turn, key: inputKey } }, at);
      // In memory the key belongs to another command since the last save.
      if (type === "conflict") await memory.steer(key, { steerId, turnId, turn }, at);
      return;
    }
    case "decision": {
      const { requestId, decision, at, decisionKey } = item;
      const { type } = await memory.decide(key, requestId, decision, at, { key: decisionKey });
      // In memory the key belongs to another command since the last save.
      if (type === "taken") await memory.decide(key, requestId, decision, at);
      return;
    }
    case "pause":
      // Descendants have the item without the flag; pausing the tree in memory posts to them again.
      if (saved.pause) await memory.pause(key, item.by, item.at, { now: item.now });
      return;
    case "resume":
      await memory.resume(key, item.by, item.at);
      return;
    case "abort": {
      const { turnId, by, reason, stopReason, at } = item;
      await memory.abort(key, { turnId, by, reason, stopReason }, at);
      return;
    }
    case "budget.changed":
      if (item.change) {
        const { by, limits, before } = item.change;
        await memory.setBudget(key, { by, change: changeBetween(before, limits) }, item.at);
      }
      return;
    case "budget.freed": {
      // Only owners post this item, unless it is a person's decision.
      const { decided, at } = item;
      if (!decided) return;
      const { requestId, verdict, by, reason, amount } = decided;
      const edited = amount === undefined ? {} : { arguments: { add: amount } };
      await memory.decide(key, requestId, { verdict, by, reason, ...edited }, at);
      return;
    }
    case "child.ended":
    case "child.reported":
    case "call.ended":
    case "budget.warning":
      // Only owners post these items, and this process is the owner.
      return;
    case "lease.wanted":
      // The tree stays in memory while its handle holds it.
      return;
    default:
      item satisfies never;
  }
}
