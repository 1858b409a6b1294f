import type { AgentKey, AgentRecord, InboxItem } from "../../state/index.ts";
import type { KnownItems, StoredTree, Stores } from "../../stores/index.ts";

const ALL = Number.MAX_SAFE_INTEGER;

/**
 * Other processes know a held tree as it was saved last, and send it turns, decisions, pauses and aborts there. They were
 * answered, so they are given to the tree as it is.
 */
export class PassedCommands {
  readonly #known = new Map<string, Set<string>>();

  /** Items that the tree has already. */
  get known(): KnownItems {
    return this.#known;
  }

  /** The tree is there with these items now. */
  note(tree: StoredTree): void {
    this.#known.clear();
    for (const { record, inbox } of tree.agents) for (const { key } of inbox) this.#isNew(record.agentId, key);
  }

  /** Gives what is new in `saved` to `held`; tells whether there was anything. */
  async pass(saved: Stores, held: Stores, { tenant, agentId: rootAgentId }: AgentKey): Promise<boolean> {
    let isAny = false;
    for (const record of await saved.listAgents({ tenant, rootAgentId, limit: ALL })) {
      const key = { tenant, agentId: record.agentId };
      for (const item of await saved.inbox(key)) {
        if (!this.#isNew(record.agentId, item.key)) continue;
        await give(held, record, item);
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

async function give(held: Stores, saved: AgentRecord, item: InboxItem): Promise<void> {
  const { tenant, agentId } = saved;
  const key = { tenant, agentId };
  switch (item.kind) {
    case "turn": {
      const { input, actorId, limits, at } = item;
      await held.openTurn(key, { input, actorId, limits, ifBusy: "queue" }, at);
      return;
    }
    case "decision":
      await held.decide(key, item.requestId, item.decision, item.at);
      return;
    case "pause":
      // Descendants were only told; they are told again.
      if (saved.pause) await held.pause(key, item.by, item.at, { now: item.now });
      return;
    case "resume":
      await held.resume(key, item.by, item.at);
      return;
    case "abort": {
      const { turnId, by, reason, stopReason, at } = item;
      await held.abort(key, { turnId, by, reason, stopReason }, at);
      return;
    }
    case "child.ended":
    case "child.reported":
    case "call.ended":
    case "budget.freed":
    case "budget.warning":
      // Only owners post these, and the owner is here.
      return;
    default:
      item satisfies never;
  }
}
