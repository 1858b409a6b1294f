import { type Entry, isResting, type Lifecycle, type TurnState } from "../../state/index.ts";
import type { BudgetMove } from "../../stores/index.ts";

/** What is watched of a live agent. */
export interface WorkingAgent {
  readonly lifecycle: Lifecycle;
  readonly openTurnId: string | null;
  turn(turnId: string): TurnState | undefined;
  /** Whether a call of the open turn waits in line for a place. */
  isInLine(callId: string): boolean;
}

/** What a change of activity calls for. */
export interface ActivityChange {
  readonly move: Extract<BudgetMove, { type: "activity" }>;
  /** Requests that the turn now waits for, and nothing else of its own goes on. */
  readonly waitsFor: readonly string[];
}

/**
 * Whether the open turn works or rests: `maxSeconds` runs only while it works (design, Budgets). It follows from the state
 * alone; the account is told each change, and once more when an agent is taken up, since the last change may be lost.
 */
export class Activity {
  readonly #agent: WorkingAgent;
  #accountId: string | undefined;
  #isActive = false;

  constructor(agent: WorkingAgent) {
    this.#agent = agent;
  }

  /** As it was told last. */
  get isActive(): boolean {
    return this.#isActive;
  }

  /** For an agent that is taken up with a turn under way. */
  begin(): ActivityChange["move"] | undefined {
    const turn = this.#openTurn();
    if (!turn) return undefined;
    this.#accountId = turn.accountId;
    this.#isActive = this.#works(turn);
    return { type: "activity", accountId: turn.accountId, isActive: this.#isActive };
  }

  /** To be called after each entry. */
  look(entry: Entry): ActivityChange | undefined {
    const turn = this.#openTurn();
    const accountId = turn?.accountId ?? this.#accountId;
    const isActive = turn !== undefined && this.#works(turn);
    const isChanged = isActive !== this.#isActive || accountId !== this.#accountId;
    // After a pause it still waits for what it waited for: those who watch are told again.
    const isBack = entry.type === "agent.resumed" && turn !== undefined && !isActive;
    if (accountId === undefined || !(isChanged || isBack)) return undefined;
    this.#accountId = accountId;
    this.#isActive = isActive;
    const waits = turn !== undefined && !isActive && entry.type !== "agent.paused";
    return { move: { type: "activity", accountId, isActive }, waitsFor: waits ? turn.openRequestIds : [] };
  }

  #openTurn(): TurnState | undefined {
    const { openTurnId } = this.#agent;
    return openTurnId === null ? undefined : this.#agent.turn(openTurnId);
  }

  #works(turn: TurnState): boolean {
    return this.#agent.lifecycle !== "paused" && !isResting(turn, (callId) => this.#agent.isInLine(callId));
  }
}
