import { agentOfTurn, type TroupeEvent } from "../../state/index.ts";
import type { Caller, StartedTurn } from "../core/caller.ts";

/**
 * The events of one turn and of everything below it, up to its end, after a cursor of its tree. `turn` itself can be
 * iterated too, but that neither begins after a cursor nor ends with a signal.
 */
export async function* turnEvents(
  caller: Caller,
  { agent, turnId }: Pick<StartedTurn, "agent" | "turnId">,
  reading: { readonly after: string | undefined; readonly signal: AbortSignal },
): AsyncGenerator<TroupeEvent, void, undefined> {
  const below = new BelowTurn(caller, turnId);
  for await (const event of caller.events(agent.rootAgentId, reading)) {
    if (event.turnId === turnId || (await below.has(event))) yield event;
    if (event.turnId === turnId && isEnd(event)) return;
  }
}

function isEnd({ type }: TroupeEvent): boolean {
  return type === "turn.completed" || type === "turn.stopped" || type === "turn.failed";
}

/** Which agents of a tree were spawned under one turn, directly or not. */
class BelowTurn {
  readonly #caller: Caller;
  readonly #turnId: string;
  readonly #known = new Map<string, boolean>();

  constructor(caller: Caller, turnId: string) {
    this.#caller = caller;
    this.#turnId = turnId;
    this.#known.set(agentOfTurn(turnId), false);
  }

  async has(event: TroupeEvent): Promise<boolean> {
    const { agentId, rootAgentId } = event;
    if (!this.#known.has(agentId)) await this.#readTree(rootAgentId);
    const isBelow = this.#known.get(agentId) ?? false;
    // A spawn is told before anything of the child itself.
    if (event.type === "subagent.spawned") this.#known.set(event.childId, isBelow || event.turnId === this.#turnId);
    return isBelow;
  }

  /** For a stream that begins after the spawn: the records say under which turn it was. */
  async #readTree(rootAgentId: string): Promise<void> {
    const { runtime } = this.#caller;
    const records = await runtime.list({ rootAgentId, limit: Number.MAX_SAFE_INTEGER });
    const parents = new Map(records.map((record) => [record.agentId, record]));
    for (const { agentId } of records) {
      let one = parents.get(agentId);
      while (one && one.parentTurnId !== this.#turnId) one = parents.get(one.parentAgentId ?? "");
      this.#known.set(agentId, one !== undefined);
    }
  }
}
