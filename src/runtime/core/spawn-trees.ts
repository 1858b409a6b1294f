import { agentOfTurn } from "../../state/index.ts";
import { type FollowSource, followTree } from "../follow/follow.ts";
import type { Reading } from "../follow/tree-stream.ts";

/** Who was spawned under which turn, as far as this process has heard of it. */
export class SpawnTrees {
  readonly #parentTurns = new Map<string, string | null>();
  /** Those that nobody waits for. */
  readonly #background = new Set<string>();

  note(agentId: string, parentTurnId: string | null, isBackground: boolean): void {
    this.#parentTurns.set(agentId, parentTurnId);
    if (isBackground) this.#background.add(agentId);
  }

  /** Null for a root or an agent that was not heard of. */
  parentTurnOf(agentId: string): string | null {
    return this.#parentTurns.get(agentId) ?? null;
  }

  /** Whether a turn is the agent's own, or waits for one of it, as far as this process has heard of them. */
  awaits(turnId: string, agentId: string): boolean {
    for (let at = agentId; ; ) {
      if (agentOfTurn(turnId) === at) return true;
      const parentTurnId = this.#background.has(at) ? null : this.parentTurnOf(at);
      if (parentTurnId === null) return false;
      if (parentTurnId === turnId) return true;
      at = agentOfTurn(parentTurnId);
      // A turn of an agent above that is another one than the child's waits for nothing below.
      if (agentOfTurn(turnId) === at) return false;
    }
  }

  /** The tree's events from the beginning or after a cursor, learning from them who was spawned by whom. */
  async *follow(source: FollowSource, rootAgentId: string, reading: Reading) {
    const agents = await source.stores.listAgents({ tenant: source.tenant, rootAgentId, limit: 10_000 });
    for (const { agentId, parentTurnId, background } of agents) {
      this.note(agentId, parentTurnId, background !== undefined);
    }
    for await (const event of followTree(source, rootAgentId, reading)) {
      if (event.type === "subagent.spawned" && event.turnId) {
        this.note(event.childId, event.turnId, event.mode === "background");
      }
      yield event;
    }
  }
}
