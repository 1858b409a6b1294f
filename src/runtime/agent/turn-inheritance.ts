import { agentOfTurn, turnIdOf } from "../../state/index.ts";

/**
 * Values of open turns, in the memory of this process. A child's turn inherits from the turn that spawned it.
 * Owns: the values. Does not own: which turn spawned which agent.
 */
export class TurnInheritance<Value> {
  readonly #byTurn = new Map<string, Value>();
  readonly #parentTurnOf: (agentId: string) => string | null;

  constructor(parentTurnOf: (agentId: string) => string | null) {
    this.#parentTurnOf = parentTurnOf;
  }

  keep(turnId: string, value: Value): void {
    this.#byTurn.set(turnId, value);
  }

  /** Gives the value to the turn that was opened for it. */
  move(from: string, turnId: string): void {
    const value = this.#byTurn.get(from);
    if (value === undefined) return;
    this.#byTurn.delete(from);
    this.#byTurn.set(turnId, value);
  }

  /** Drops the value of an ended turn; children that outlive the turn keep it for their first turns. */
  forget(turnId: string, heirs: readonly string[] = []): void {
    const value = heirs.length > 0 ? this.find(turnId) : undefined;
    this.#byTurn.delete(turnId);
    if (value === undefined) return;
    for (const heir of heirs.map((childId) => turnIdOf(childId, 1))) {
      if (!this.#byTurn.has(heir)) this.#byTurn.set(heir, value);
    }
  }

  /** The first value that fits, searched from the turn itself up to the root. */
  find(turnId: string, fits: (value: Value) => boolean = () => true): Value | undefined {
    if (this.#byTurn.size === 0) return undefined;
    for (let at: string | null = turnId; at !== null; at = this.#parentTurnOf(agentOfTurn(at))) {
      const value = this.#byTurn.get(at);
      if (value !== undefined && fits(value)) return value;
    }
    return undefined;
  }
}
