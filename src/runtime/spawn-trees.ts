import { type FollowSource, followTree } from "./follow.ts";
import type { Reading } from "./tree-stream.ts";

/** Who was spawned under which turn, as far as this process has heard of it. */
export class SpawnTrees {
  readonly #parentTurns = new Map<string, string | null>();

  note(agentId: string, parentTurnId: string | null): void {
    this.#parentTurns.set(agentId, parentTurnId);
  }

  /** Null for a root or an agent that was not heard of. */
  parentTurnOf(agentId: string): string | null {
    return this.#parentTurns.get(agentId) ?? null;
  }

  /** The tree's events from the beginning or after a cursor, learning from them who was spawned by whom. */
  async *follow(source: FollowSource, rootAgentId: string, reading: Reading) {
    const agents = await source.stores.listAgents({ tenant: source.tenant, rootAgentId, limit: 10_000 });
    for (const { agentId, parentTurnId } of agents) this.note(agentId, parentTurnId);
    for await (const event of followTree(source, rootAgentId, reading)) {
      if (event.type === "subagent.spawned" && event.turnId) this.note(event.childId, event.turnId);
      yield event;
    }
  }
}
