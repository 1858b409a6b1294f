import { type AgentIdentity, agentOfTurn, type TurnState } from "../state/index.ts";
import { type Auth, concealCredentials } from "../tools/index.ts";
import type { AuthRequest, RuntimeOptions } from "./types.ts";

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
    let nameOnly: Auth | undefined;
    for (let at: string | null = turnId; at !== null; at = this.#parentTurnOf(agentOfTurn(at))) {
      const auth = this.#byTurn.get(at);
      if (auth?.credentials !== undefined) return auth;
      nameOnly ??= auth;
    }
    return nameOnly;
  }

  /** After a restart: asks for the credentials of a turn that is carried on. */
  async resume(identity: AgentIdentity, { actorId, turnId }: TurnState): Promise<void> {
    if (actorId === null || this.of(turnId)) return;
    const auth = (await this.ask({ actorId, agentId: identity.agentId, turnId, reason: "restart" })) ?? { actorId };
    this.keep(turnId, auth);
  }

  /** Credentials that a tool needs and nobody has: what the program gives is kept for the turn. */
  async resolve(identity: AgentIdentity, turnId: string, actorId: string | null): Promise<Auth | undefined> {
    if (actorId === null) return undefined;
    const auth = await this.ask({ actorId, agentId: identity.agentId, turnId, reason: "tool" });
    if (auth) this.keep(turnId, auth);
    return auth;
  }

  async ask(request: AuthRequest): Promise<Auth | undefined> {
    return await this.#resolve?.(request);
  }
}
