import { type AgentRecord, type Lifecycle, type OwnedFields, statusOf, type AgentKey } from "../../state/index.ts";
import type { AgentStatus } from "../doors/agent-types.ts";
import { AlreadyOwnedError, LeaseLostError } from "../../errors/index.ts";
import type { Activation } from "../agent/activation.ts";
import type { RuntimeCore } from "../core/runtime-core.ts";

/**
 * Where an agent lives, as its handle in this process has to know it.
 * Owns: its activation here, as the handle last saw it.
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

  /** The activation that lives here, or the last one that did since the handle forgot it. */
  get last(): Activation | undefined {
    return this.live ?? (this.#seen && this.#core.live.lastOf(this.#seen));
  }

  /** What was read since is newer. */
  forget(): void {
    this.#seen = undefined;
  }

  /** Whether its handle has the agent run by this process. */
  get runsHere(): boolean {
    return this.#core.part.role === "all";
  }

  /** Takes the agent up here; undefined where others run it: whoever does hears of what came. */
  async own(): Promise<Activation | undefined> {
    if (!this.runsHere) return undefined;
    try {
      return await this.#core.live.own(this.key);
    } catch (error) {
      if (error instanceof AlreadyOwnedError || error instanceof LeaseLostError) return undefined;
      throw error;
    }
  }

  /** Whoever was posted to is told; this agent too, where it does not live here and any process may take it up. */
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

/** As its activation shows it, or as it was read last where it does not live here. */
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

/** As others are to see it: with the status that its record tells. */
export function listed(record: AgentRecord): AgentRecord {
  return { ...record, status: statusOf(record) };
}

/** Why a turn is not accepted, in words. */
export function notStartedText(agentId: string, status: Lifecycle): string {
  return `agent "${agentId}" is ${status}; call start() before its first turn, and again after shutdown()`;
}

export function busyText(agentId: string, openTurnId: string): string {
  return `agent "${agentId}" is busy with turn ${openTurnId}; wait for it, or pass { ifBusy: "queue" } or { ifBusy: "supersede" }`;
}
