import { type AgentRecord, type Lifecycle, type OwnedFields, statusOf, type AgentKey } from "../../state/index.ts";
import type { AgentStatus } from "../doors/agent-types.ts";
import { AlreadyOwnedError, LeaseLostError } from "../../errors/index.ts";
import type { Activation } from "../agent/activation.ts";
import type { RuntimeCore } from "../core/runtime-core.ts";

/**
 * An agent's activation in this process, for its handle.
 * Owns: the activation that the handle last saw.
 */
export class LocalAgent {
  readonly key: AgentKey;
  readonly #core: RuntimeCore;
  #seen: Activation | undefined;

  constructor(core: RuntimeCore, agentId: string) {
    this.#core = core;
    this.key = core.keyOf(agentId);
  }

  get live(): Activation | undefined {
    const live = this.#core.live.get(this.key);
    if (live) this.#seen = live;
    return live;
  }

  /** The activation that lives here, else the last one since `forget()`. */
  get last(): Activation | undefined {
    return this.live ?? (this.#seen && this.#core.live.lastOf(this.#seen));
  }

  /** Forgets the last activation, because a newer record was read. */
  forget(): void {
    this.#seen = undefined;
  }

  /** Whether this process runs the agents of its handles. */
  get runsHere(): boolean {
    return this.#core.part.role === "all";
  }

  /** Activates the agent here; undefined if other processes run it, which get its items anyway. */
  async own(): Promise<Activation | undefined> {
    if (!this.runsHere) return undefined;
    try {
      return await this.#core.live.own(this.key);
    } catch (error) {
      if (error instanceof AlreadyOwnedError || error instanceof LeaseLostError) return undefined;
      throw error;
    }
  }

  /**
   * Notifies the agents that were posted to; this one too, if it does not live here and any process may activate it.
   */
  tell(posted: readonly string[], here: Activation | undefined): void {
    const { agentId } = this.key;
    const others = posted.filter((one) => one !== agentId);
    const isToBeWoken = !here && this.#core.live.isOthers(this.key);
    this.#core.live.notify(isToBeWoken ? [agentId, ...others] : others);
  }
}

interface LiveStatus {
  readonly owned: OwnedFields;
  readonly lifecycle: Lifecycle;
  readonly openTurnId: string | null;
}

/** The status from the activation, or from the last record if the agent does not live here. */
export function agentStatusOf(record: AgentRecord, live: LiveStatus | undefined, isShutDown: boolean): AgentStatus {
  const { turnCount, lastActivity, error } = live?.owned ?? record;
  const { metadata } = record;
  return {
    status: isShutDown ? "shutdown" : (live?.lifecycle ?? statusOf(record)),
    turnCount,
    lastActivity,
    ...(error ? { error } : {}),
    ...(Object.keys(metadata).length > 0 ? { metadata } : {}),
    openTurnId: live ? live.openTurnId : record.openTurnId,
  };
}

/** The record with the status that others see. */
export function listed(record: AgentRecord): AgentRecord {
  return { ...record, status: statusOf(record) };
}

/** The message for a turn that is not accepted. */
export function notStartedText(agentId: string, status: Lifecycle): string {
  return `agent "${agentId}" is ${status}; call start() before its first turn, and again after shutdown()`;
}

export function busyText(agentId: string, openTurnId: string): string {
  return `agent "${agentId}" is busy with turn ${openTurnId}; wait for it, or pass { ifBusy: "queue" } or { ifBusy: "supersede" }`;
}
