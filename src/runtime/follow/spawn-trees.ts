import { type AgentIdentity, agentOfTurn } from "../../state/index.ts";

/** Records which agents were spawned under which turns, as far as this process knows. */
export class SpawnTrees {
  readonly #parentTurns = new Map<string, string>();
  /** Children that their parent's turn does not wait for. */
  readonly #background = new Set<string>();

  note({ agentId, parentTurnId, background }: Pick<AgentIdentity, "agentId" | "parentTurnId" | "background">): void {
    if (parentTurnId !== null) this.#parentTurns.set(agentId, parentTurnId);
    if (background !== undefined) this.#background.add(agentId);
  }

  /** The turn under which an agent was spawned; null for a root or an unknown agent. */
  parentTurnOf(agentId: string): string | null {
    return this.#parentTurns.get(agentId) ?? null;
  }

  /** Whether an agent was spawned under the turn, at any depth. */
  isBelow(turnId: string, agentId: string): boolean {
    for (let at = agentId; ; ) {
      const parentTurnId = this.parentTurnOf(at);
      if (parentTurnId === null) return false;
      if (parentTurnId === turnId) return true;
      at = agentOfTurn(parentTurnId);
    }
  }

  /** Whether the turn belongs to the agent, or waits for a turn of it. */
  awaits(turnId: string, agentId: string): boolean {
    for (let at = agentId; ; ) {
      if (agentOfTurn(turnId) === at) return true;
      const parentTurnId = this.#background.has(at) ? null : this.parentTurnOf(at);
      if (parentTurnId === null) return false;
      if (parentTurnId === turnId) return true;
      at = agentOfTurn(parentTurnId);
      // Only the parent turn that spawned the child waits for it; other turns of the parent do not.
      if (agentOfTurn(turnId) === at) return false;
    }
  }
}
