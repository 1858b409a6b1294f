import { type AgentIdentity, agentOfTurn, type TurnState } from "../state/index.ts";
import { type Auth, concealCredentials } from "../tools/index.ts";
import type { RuntimeOptions } from "./types.ts";

/**
 * Who each open turn runs for, credentials included. In memory only: credentials are never stored (row L9). Children
 * inherit from the turn that spawned them.
 */
export class AuthBook {
  readonly #byTurn = new Map<string, Auth>();
  readonly #resolve: RuntimeOptions["resolveAuth"];
  readonly #parentTurnOf: (agentId: string) => string | null;

  constructor(resolve: RuntimeOptions["resolveAuth"], parentTurnOf: (agentId: string) => string | null) {
    this.#resolve = resolve;
    this.#parentTurnOf = parentTurnOf;
  }

  keep(turnId: string, auth: Auth): void {
    this.#byTurn.set(turnId, concealCredentials(auth));
  }

  forget(turnId: string): void {
    this.#byTurn.delete(turnId);
  }

  of(turnId: string): Auth | undefined {
    for (let at: string | null = turnId; at !== null; at = this.#parentTurnOf(agentOfTurn(at))) {
      const auth = this.#byTurn.get(at);
      if (auth) return auth;
    }
    return undefined;
  }

  /** After a restart: asks for the credentials of a turn that is carried on. */
  async resolve(identity: AgentIdentity, turn: TurnState): Promise<void> {
    const { actorId, turnId } = turn;
    if (actorId === null || this.of(turnId)) return;
    const auth = (await this.#resolve?.({ actorId, agentId: identity.agentId, turnId })) ?? { actorId };
    this.keep(turnId, auth);
  }
}
