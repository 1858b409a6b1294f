import type { Proposed } from "../../actors/index.ts";
import { createDeferred } from "../../base/index.ts";
import type { Entry, IntentBody } from "../../state/index.ts";

/** What a step begins with: held back, the turn stands between two things that it does. */
const begins: ReadonlySet<IntentBody["type"]> = new Set(["model.requested", "tool.started", "child.spawned"]);

/**
 * Lets an agent's intents through, until its process leaves.
 * Owns: which effects are held back. What they ask for was never proposed: the next owner's effects ask for it anew.
 */
export class IntentGate {
  readonly #held = new Set<string | null>();
  #onHeld: (() => void) | undefined;

  /** Nothing new is begun from now on. */
  close(onHeld: () => void): void {
    this.#onHeld ??= onHeld;
  }

  /** Whether an effect's intent has to wait; `callId`: whose effect it is, null for the turn's own. */
  holds(type: IntentBody["type"]): boolean {
    return this.#onHeld !== undefined && begins.has(type);
  }

  isHolding(callId: string | null): boolean {
    return this.#held.has(callId);
  }

  /** Never settles: the activation is discarded with it. */
  async hold(callId: string | null): Promise<never> {
    this.#held.add(callId);
    this.#onHeld?.();
    return await createDeferred<never>().promise;
  }
}

/** As the effect that asked for it takes it. */
export function proposedOf<Type extends IntentBody["type"]>(entry: Entry): Proposed<Type> {
  return (entry.type === "intent.refused" ? { granted: false, entry } : { granted: true, entry }) as Proposed<Type>;
}
