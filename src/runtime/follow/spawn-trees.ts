import { type AgentIdentity, agentOfTurn } from "../../state/index.ts";

type Spawned = Pick<AgentIdentity, "agentId" | "parentAgentId" | "parentTurnId" | "background">;

/** Records which agents were spawned by which agents and turns, as far as this process knows. */
export class SpawnTrees {
  readonly #parentTurns = new Map<string, string>();
  readonly #parents = new Map<string, string>();
  readonly #children = new Map<string, string[]>();
  /** Children that their parent's turn does not wait for. */
  readonly #background = new Set<string>();

  note({ agentId, parentAgentId, parentTurnId, background }: Spawned): void {
    if (parentAgentId === null || this.#parents.has(agentId)) return;
    this.#parents.set(agentId, parentAgentId);
    const siblings = this.#children.get(parentAgentId);
    if (siblings) siblings.push(agentId);
    else this.#children.set(parentAgentId, [agentId]);
    if (parentTurnId !== null) this.#parentTurns.set(agentId, parentTurnId);
    if (background !== undefined) this.#background.add(agentId);
  }

  /** Forgets an agent and all below it. */
  forget(agentId: string): void {
    for (const one of [agentId, ...this.below(agentId)]) {
      this.#parentTurns.delete(one);
      this.#parents.delete(one);
      this.#children.delete(one);
      this.#background.delete(one);
    }
  }

  /** The agents below an agent, at any depth. */
  below(agentId: string): string[] {
    const found = [...(this.#children.get(agentId) ?? [])];
    for (const one of found) found.push(...(this.#children.get(one) ?? []));
    return found;
  }

  /** The agents above an agent, from its parent to the root. */
  *ancestorsOf(agentId: string): Iterable<string> {
    for (let at = this.#parents.get(agentId); at !== undefined; at = this.#parents.get(at)) yield at;
  }

  /** The turn under which an agent was spawned; `null` for a root or an unknown agent. */
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

  /** Whether the turn belongs to the agent, or waits for one of its turns. */
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
