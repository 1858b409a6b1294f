import { type AsyncContext, processContext } from "../../base/index.ts";
import { TurnInheritance } from "./turn-inheritance.ts";

/** The name under which context and credentials of an input are kept until it has opened a turn. */
export function nameOfInput(agentId: string, steerId: string): string {
  return `${agentId} ${steerId}`;
}

/**
 * The async contexts of open turns. User code called by a turn runs in the context of the code that requested the turn.
 *
 * Invariants
 * 1. A turn's context is captured when `executeTurn` is called, and later callers do not replace it.
 * 2. A child's turn has the context of the turn that spawned it.
 * 3. A turn that was not requested in this process runs in `processContext`.
 */
export class TurnContexts {
  readonly #contexts: TurnInheritance<AsyncContext>;

  constructor(parentTurnOf: (agentId: string) => string | null) {
    this.#contexts = new TurnInheritance(parentTurnOf);
  }

  keep(turnId: string, context: AsyncContext): void {
    this.#contexts.keep(turnId, context);
  }

  /** Gives the context that was kept for an input to the turn that it has opened. */
  move(from: string, turnId: string): void {
    this.#contexts.move(from, turnId);
  }

  /** `heirs`: background children, which outlive the turn. */
  forget(turnId: string, heirs?: readonly string[]): void {
    this.#contexts.forget(turnId, heirs);
  }

  of(turnId: string | null): AsyncContext {
    return (turnId === null ? undefined : this.#contexts.find(turnId)) ?? processContext;
  }
}
